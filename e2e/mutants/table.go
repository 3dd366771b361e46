package main

// Packages whose tests catch mutants. The suite proves whole histories; a test of the
// dispatcher is named where it alone can make the moment that matters.
const (
	suite      = "./e2e"
	dispatcher = "./dispatcher"
	balancer   = "./dispatcher/balancer"
)

// mutants, each of one promise that it breaks. A feature adds a row for each promise it
// makes.
var mutants = []mutant{
	{
		name: "commit first", promise: "nothing is lost",
		file: "dispatcher/request.go",
		old:  "	n.flying[it] = true\n",
		new: `	n.flying[it] = true
	if it.topic == n.d.topo.Events() {
		n.out.decide(now, decision{done: []place{{it.topic, it.offset}}})
	}
`,
		pkg: suite, run: "TestKilledAgainAndAgain",
	},
	{
		name: "retry record outside of the transaction", promise: "one chain per event",
		file: "dispatcher/transaction.go",
		old:  "		t.client.Produce(ctx, r.rec, func(_ *kgo.Record, err error) {\n",
		new: `		client := t.client
		if r.rec.Topic == t.d.topo.Retry(2*time.Second) {
			client = t.d.plain
		}
		client.Produce(ctx, r.rec, func(_ *kgo.Record, err error) {
`,
		pkg: dispatcher, run: "TestAbortedCycle",
	},
	{
		name: "state in a transaction of its own", promise: "one chain per event",
		file: "dispatcher/outbox.go",
		old: `	p := &part{records: b.records, states: b.states, notes: b.notes, recent: b.recent, offsets: offsets, bytes: b.bytes, since: b.since}
	b.records, b.states, b.notes, b.recent, b.bytes, b.since = nil, map[string]record.State{}, nil, nil, 0, time.Time{}
`,
		new: `	p := &part{records: b.records, notes: b.notes, recent: b.recent, offsets: offsets, bytes: b.bytes, since: b.since}
	if len(b.records) == 0 {
		p.states, b.states = b.states, map[string]record.State{}
	} else {
		ring(b.bell)
	}
	b.records, b.notes, b.recent, b.bytes, b.since = nil, nil, nil, 0, time.Time{}
`,
		pkg: suite, run: "TestKilledAgainAndAgain",
	},
	{
		name: "half of a step", promise: "one chain per event",
		file: "dispatcher/outbox.go",
		old: `	b.step.Lock()
	defer b.step.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trackers == nil {`,
		new: `	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trackers == nil {`,
		pkg: dispatcher, run: "TestStepIsNotSplit",
	},
	{
		name: "done set forgotten at restore", promise: "one chain per event",
		file: "dispatcher/restore.go",
		old:  "tracker.New(c.at, c.done), c.at",
		new:  "tracker.New(c.at, tracker.Set{}), c.at",
		pkg:  suite, run: "TestKilledAgainAndAgain",
	},
	{
		name: "unknown end taken as aborted", promise: "one chain per event",
		file: "dispatcher/transaction.go",
		old:  "		return t.settle(ctx, b, err)\n",
		new:  "		t.close()\n		return outcomeAborted, err\n",
		pkg:  dispatcher, run: "TestAnswerToTheEndIsLost",
	},
	{
		name: "one record's failure overlooked", promise: "nothing is lost",
		file: "dispatcher/transaction.go",
		old:  "	wg.Wait()\n	return first\n",
		new:  "	wg.Wait()\n	return nil\n",
		pkg:  dispatcher, run: "TestRefusedRecord",
	},
	{
		name: "a fresh member and generation", promise: "nothing is lost",
		file: "dispatcher/offsets.go",
		old:  "		req := kmsg.NewPtrTxnOffsetCommitRequest()\n",
		new:  "		b.member, b.generation, _ = t.d.membership()\n		req := kmsg.NewPtrTxnOffsetCommitRequest()\n",
		pkg:  dispatcher, run: "TestFrozenPairGoesWithTheCommit",
	},
	{
		name: "a new member id overlooked", promise: "one chain per event",
		file: "dispatcher/ownership.go",
		old:  "			if n.member == member {\n				continue\n",
		new:  "			if n.member == member || member != \"\" {\n				n.member = member\n				continue\n",
		pkg:  dispatcher, run: "TestNewMemberIDBeginsNewLives",
	},
	{
		name: "states read to where they are stable", promise: "one chain per event",
		file: "internal/kafka/readall.go",
		old:  "		if batch.Next == next {\n			select {",
		new:  "		if batch.Next == next {\n			return next, nil\n		}\n		if batch.Next < 0 {\n			select {",
		pkg:  dispatcher, run: "TestStatesAreReadToTheHighWatermark",
	},
	{
		name: "a number that is split", promise: "one owner per webhook",
		file: "dispatcher/balancer/balancer.go",
		old:  "					plan.AddPartition(to, topic, p)\n",
		new: `					other, _ := cb.MemberAt((i + len(topic)) % len(members))
					plan.AddPartition(other, topic, p)
					_ = to
`,
		pkg: balancer, run: "TestGroupOfClients",
	},
	{
		name: "no lease", promise: "requests repeat only after an incident",
		file: "dispatcher/lease.go",
		old:  "	return ok && age < leaseTime\n",
		new:  "	return ok && age >= 0\n",
		pkg:  dispatcher, run: "TestCutOff",
	},
	{
		name: "nothing cut when the lease has run out", promise: "requests repeat only after an incident",
		file: "dispatcher/lease.go",
		old:  "	return !ok || age >= sessionTimeout\n",
		new:  "	return !ok && age >= sessionTimeout\n",
		pkg:  dispatcher, run: "TestCutOff",
	},
	{
		name: "a cut request counts as made", promise: "one chain per event",
		file: "dispatcher/outcome.go",
		old:  "		n.backToLane(now, w, it)\n		return\n	case delivery.ClassOurs:",
		new:  "		n.backToLane(now, w, it)\n	case delivery.ClassOurs:",
		pkg:  dispatcher, run: "TestCutByTheLeaseIsSentAgain",
	},
	{
		name: "fenced is harmless", promise: "two with one name stop each other",
		file: "dispatcher/transaction.go",
		old:  "	if !kafka.IsFenced(err) || ",
		new:  "	if err != nil || ",
		pkg:  dispatcher, run: "TestFencedAgainAndAgain",
	},
	{
		name: "a living predecessor is fenced", promise: "one owner per webhook",
		file: "dispatcher/takeover.go",
		old:  "			delete(before, *m.InstanceID)\n",
		new:  "			delete(before, *m.InstanceID+\"?\")\n",
		pkg:  dispatcher, run: "TestTakeoverSparesTheLiving",
	},
	{
		name: "a dead predecessor is waited for", promise: "silence of 15 s at most",
		file: "dispatcher/takeover.go",
		old:  "	if len(before) == 0 {\n",
		new:  "	if len(before) >= 0 {\n",
		pkg:  dispatcher, run: "TestTakeoverFromTheDead",
	},
	{
		name: "revoked with requests in flight", promise: "requests repeat only after an incident",
		file: "dispatcher/number.go",
		old:  "	if n.inFlight.Load() > 0 {\n		return\n	}\n	select {",
		new:  "	if n.inFlight.Load() < 0 {\n		return\n	}\n	select {",
		pkg:  suite, run: "TestJoinAndLeave",
	},
	{
		name: "starts while it drains", promise: "requests repeat only after an incident",
		file: "dispatcher/number.go",
		old:  "		n.checkDrained()\n		return idleTurn\n",
		new:  "		n.checkDrained()\n",
		pkg:  dispatcher, run: "TestNothingStartsInADrain",
	},
	{
		name: "a new life beside requests of the old one", promise: "one request at a time",
		file: "dispatcher/number.go",
		old:  "	if n.former != nil {\n		// A webhook whose request",
		new:  "	if n.former != nil && n.serial == 0 {\n		// A webhook whose request",
		pkg:  dispatcher, run: "TestNewLifeWaitsForOldRequests",
	},
	{
		name: "outcomes pile up", promise: "requests repeat only after an incident",
		file: "dispatcher/outbox.go",
		old:  "	case !since.IsZero() && now.Sub(since) >= limit:\n",
		new:  "	case !since.IsZero() && now.Sub(since) >= limit*1000:\n",
		pkg:  dispatcher, run: "TestUncommittedOutcomesStopRequests",
	},
	{
		name: "resume skips what is parked", promise: "nothing is lost",
		file: "dispatcher/commands.go",
		old:  "	w.state.ConsecutiveFailures, w.state.StreakStartedAt = 0, record.Time{}\n	n.unpause(",
		new:  "	w.state.ConsecutiveFailures, w.state.StreakStartedAt, w.state.Parked = 0, record.Time{}, nil\n	n.unpause(",
		pkg:  suite, run: "TestTenFailuresPauseUntilResumed",
	},
	{
		name: "new events overtake parked ones", promise: "first attempts go out in order",
		file: "dispatcher/intake.go",
		old:  "	case w.parkedCount() > 0:\n",
		new:  "	case w.parkedCount() < 0:\n",
		pkg:  suite, run: "TestPauseInTraffic",
	},
	{
		name: "an event put back into parked is passed by", promise: "nothing is lost",
		file: "dispatcher/parked.go",
		old:  "	w.parked.inPass = false\n	w.parked.cursor = min(w.parked.cursor, it.offset)\n",
		new:  "",
		pkg:  suite, run: "TestPauseInTraffic",
	},
	{
		name: "no duplicates known", promise: "an event is delivered once within the window",
		file: "dispatcher/duplicate.go",
		old:  "	if n.recent.window == 0 || !n.recent.has(",
		new:  "	if n.recent.window >= 0 || !n.recent.has(",
		pkg:  dispatcher, run: "TestDuplicates",
	},
	{
		name: "deliveries of the predecessor forgotten", promise: "an event is delivered once within the window",
		file: "dispatcher/duplicate.go",
		old:  "				n.recent.add(now, r.Timestamp, id)\n",
		new:  "				_ = id\n",
		pkg:  dispatcher, run: "TestDuplicates",
	},
	{
		name: "strict order ignored", promise: "in strict order nothing overtakes",
		file: "dispatcher/order.go",
		old:  "	if !strictly(ordering) {\n		return true\n	}\n",
		new:  "	if !strictly(ordering) || it != nil {\n		return true\n	}\n",
		pkg:  suite, run: "TestOrders",
	},
	{
		name: "other keys have no heads", promise: "in strict order nothing overtakes",
		file: "dispatcher/order.go",
		old:  "		free = h.Key != key\n",
		new:  "		free = h.Key != key || key != \"\"\n",
		pkg:  suite, run: "TestOrders",
	},
	{
		name: "a head that is parked is not looked for", promise: "in strict order nothing overtakes",
		file: "dispatcher/order.go",
		old:  "		seeks = h.Parked && !w.holds(h.Source)\n",
		new:  "		seeks = h.Parked && !w.holds(h.Source) && n.d == nil\n",
		pkg:  dispatcher, run: "TestStrictHeadParkedBehind",
	},
	{
		name: "the rest follows a head whose death is not committed", promise: "in strict order nothing overtakes",
		file: "dispatcher/order.go",
		old:  "	if w.dying > 0 && (",
		new:  "	if w.dying < 0 && (",
		pkg:  dispatcher, run: "TestHeadDiesUncommitted",
	},
	{
		name: "two of a key at once", promise: "first attempts go out in order",
		file: "dispatcher/order.go",
		old:  "	if byKey(ordering) && slices.ContainsFunc(w.flight,",
		new:  "	if byKey(ordering) && it == nil && slices.ContainsFunc(w.flight,",
		pkg:  dispatcher, run: "TestOrderKey",
	},
	{
		name: "max_in_flight ignored", promise: "exactly the policy",
		file: "dispatcher/order.go",
		old:  "	if len(w.flight) >= w.limit(c) {\n",
		new:  "	if len(w.flight) >= 1000*w.limit(c) {\n",
		pkg:  dispatcher, run: "TestOrderNone",
	},
	{
		name: "eleven in flight at a streak of nine", promise: "ten failures in a row pause",
		file: "dispatcher/order.go",
		old:  "max(1, pauseAfter-streak))",
		new:  "max(1, pauseAfter))",
		pkg:  dispatcher, run: "TestTenAreTen",
	},
	{
		name: "never half-open", promise: "exactly the policy",
		file: "dispatcher/order.go",
		old:  "		if streak >= halfOpenFrom {\n",
		new:  "		if streak >= 1000*halfOpenFrom {\n",
		pkg:  dispatcher, run: "TestHalfOpen",
	},
	{
		name: "a resume at full width", promise: "exactly the policy",
		file: "dispatcher/order.go",
		old:  "	if w.widening > 0 {\n",
		new:  "	if w.widening < 0 {\n",
		pkg:  dispatcher, run: "TestResumeWidens",
	},
	{
		name: "a copy goes out beside the first", promise: "an event is delivered once within the window",
		file: "dispatcher/order.go",
		old:  "		case w.copyFlies(it):\n",
		new:  "		case w.copyFlies(it) && it == nil:\n",
		pkg:  dispatcher, run: "TestDuplicateInFlight",
	},
	{
		name: "a copy under another key keeps nobody", promise: "first attempts go out in order",
		file: "dispatcher/order.go",
		old:  "		case byKey(c.OrderingOr()) && slices.Contains(kept, it.PartitionKey):\n",
		new:  "		case it == nil && slices.Contains(kept, it.PartitionKey):\n",
		pkg:  dispatcher, run: "TestCopyUnderAnotherKey",
	},
	{
		name: "Retry-After ignored", promise: "exactly the policy",
		file: "dispatcher/outcome.go",
		old:  "	if !deleted && asked > 0 {\n",
		new:  "	if !deleted && asked < 0 {\n",
		pkg:  dispatcher, run: "TestShortRetryAfter",
	},
	{
		name: "rate limit ignored", promise: "exactly the policy",
		file: "dispatcher/wait.go",
		old:  "	if e.config.RateLimit > 0 {\n",
		new:  "	if e.config.RateLimit < 0 {\n",
		pkg:  dispatcher, run: "TestRateLimit",
	},
	{
		name: "suspects fill the pool", promise: "a dead webhook delays itself only",
		file: "dispatcher/ready.go",
		old:  "	if r == rankProven {\n",
		new:  "	if r >= rankProven {\n",
		pkg:  dispatcher, run: "TestManyDeadWebhooks",
	},
	{
		name: "retries do not count", promise: "ten failures in a row pause",
		file: "dispatcher/outcome.go",
		old:  "		w.state.ConsecutiveFailures++\n",
		new:  "		if it.Attempts == 1 {\n			w.state.ConsecutiveFailures++\n		}\n",
		pkg:  suite, run: "TestFiveAttemptsThenDead",
	},
	{
		name: "a success leaves the streak", promise: "ten failures in a row pause",
		file: "dispatcher/outcome.go",
		old:  "		w.state.ConsecutiveFailures, w.state.StreakStartedAt = 0, record.Time{}\n		n.answered(",
		new:  "		n.answered(",
		pkg:  suite, run: "TestThirdAttemptDelivers",
	},
	{
		name: "a late success ends the pause", promise: "paused means no request",
		file: "dispatcher/outcome.go",
		old:  "	n.settle(now, w, it, a, res.Failure, nil)\n",
		new:  "	n.settle(now, w, it, a, res.Failure, nil)\n	n.unpause(now, w, record.PauseFailures, record.PauseManual)\n",
		pkg:  dispatcher, run: "TestLateSuccessDoesNotUnpause",
	},
	{
		name: "retries come early", promise: "exactly the policy",
		file: "dispatcher/outcome.go",
		old:  "res.StartedAt.Add(res.Duration+wait)",
		new:  "res.StartedAt.Add(res.Duration+wait/2)",
		pkg:  suite, run: "TestFiveAttemptsThenDead",
	},
	{
		name: "every 2xx is success", promise: "exactly the policy",
		file: "dispatcher/delivery/outcome.go",
		old:  "	if status == 200 || status == 201 || status == 202 || status == 204 {\n",
		new:  "	if status >= 200 && status < 300 {\n",
		pkg:  suite, run: "TestOnlyFourStatusesAreSuccess",
	},
	{
		name: "a hop begins the chain anew", promise: "exactly the policy",
		file: "dispatcher/intake.go",
		old:  "		w.item.DueAt = record.NotBefore(w.due)\n",
		new:  "		w.item.DueAt = record.NotBefore(w.due)\n		w.item.Attempts = 0\n",
		pkg:  suite, run: "TestLongWaitHops",
	},
	{
		name: "due times as they are written", promise: "one corrupt header stops nobody",
		file: "dispatcher/intake.go",
		old:  "	return retrytiers.Clamp(it.DueAt.Time, producedAt, ceiling)\n",
		new:  "	return retrytiers.Clamp(it.DueAt.Time, producedAt, ceiling*1_000_000)\n",
		pkg:  dispatcher, run: "TestCorruptDueTime",
	},
	{
		name: "a webhook is unknown too soon", promise: "nothing is lost",
		file: "dispatcher/endpoints.go",
		old:  "		if n.endpoints.next < c.end {\n",
		new:  "		if n.endpoints.next < min(c.end, 0) {\n",
		pkg:  dispatcher, run: "TestWebhookMadeInTime",
	},
	{
		name: "another body than was signed", promise: "what is sent is what was produced",
		file: "dispatcher/delivery/request.go",
		old:  "	setBody(request, value)\n",
		new:  "	setBody(request, append(bytes.Clone(value), '\\n'))\n",
		pkg:  suite, run: "TestThirdAttemptDelivers",
	},
}
