package record

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// Generators of anything that a record can hold.

func genBytes(most int) *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.Just[[]byte](nil),
		rapid.SliceOfN(rapid.Byte(), 0, most),
		rapid.Map(rapid.StringN(0, most, most), func(s string) []byte { return []byte(s) }),
	)
}

// genAnyText are strings of any bytes, short and long.
func genAnyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 3000), func(b []byte) string { return string(b) }),
		rapid.StringN(1000, 1100, -1),
	)
}

func genWebhookID() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z0-9._:-]{1,256}`) }
func genEventID() *rapid.Generator[string]   { return rapid.StringMatching(`[!-~]{1,256}`) }
func genTopic() *rapid.Generator[string]     { return rapid.StringMatching(`[a-zA-Z0-9._-]{1,249}`) }

func genTime() *rapid.Generator[Time] {
	return rapid.OneOf(
		rapid.Just(Time{}),
		rapid.Map(rapid.Int64Range(firstTime.UnixMilli()+1, lastTime.UnixMilli()), func(ms int64) Time { return At(time.UnixMilli(ms)) }),
	)
}

func genSource() *rapid.Generator[Source] {
	return rapid.Custom(func(t *rapid.T) Source {
		return Source{genTopic().Draw(t, "topic"), rapid.Int32Min(0).Draw(t, "partition"), rapid.Int64Min(0).Draw(t, "offset")}
	})
}

func genHeaders() *rapid.Generator[[]kgo.RecordHeader] {
	name := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{ceID, ceType, ceTime, headerContentType, "tracestate", "WEBHOOK-ATTEMPT", "webhook", "x"}),
		rapid.SampledFrom([]string{headerAttempt, headerDueAt, headerSource, headerMoved, headerErrorsTopic, "webhook-new"}),
	)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) kgo.RecordHeader {
		return kgo.RecordHeader{Key: name.Draw(t, "name"), Value: genBytes(40).Draw(t, "value")}
	}), 0, 8)
}

// genRecord is any record that Kafka could hold on one of our topics.
func genRecord() *rapid.Generator[*kgo.Record] {
	return rapid.Custom(func(t *rapid.T) *kgo.Record {
		place := genSource().Draw(t, "place")
		key := rapid.OneOf(genBytes(300), rapid.Map(genWebhookID(), func(s string) []byte { return []byte(s) })).Draw(t, "key")
		return &kgo.Record{
			Topic: place.Topic, Partition: place.Partition, Offset: place.Offset,
			Key: key, Value: genBytes(100).Draw(t, "value"), Headers: genHeaders().Draw(t, "headers"),
			Timestamp: time.UnixMilli(rapid.Int64().Draw(t, "timestamp")),
		}
	})
}

// genDelivery is any delivery that a dispatcher could hold: read from an event,
// perhaps moved, with some progress.
func genDelivery() *rapid.Generator[*Delivery] {
	return rapid.Custom(func(t *rapid.T) *Delivery {
		d, _ := FromEvent(genRecord().Draw(t, "record"))
		if rapid.Bool().Draw(t, "moved") {
			src := genSource().Draw(t, "moved from")
			d.Moved = &src
			if d.IDDerived {
				d.ID = derivedID(src)
			}
		} else if d.Moved != nil && d.IDDerived {
			d.ID = derivedID(*d.Moved)
		}
		d.Attempts = rapid.IntRange(0, maxAttempts).Draw(t, "attempts")
		d.DueAt, d.FirstAttemptAt, d.LastAttemptAt = genTime().Draw(t, "due"), genTime().Draw(t, "first"), genTime().Draw(t, "last")
		d.LastStatus = rapid.OneOf(rapid.Just(0), rapid.IntRange(100, 999)).Draw(t, "status")
		d.LastError = genAnyText().Draw(t, "error")
		d.Redrive = rapid.SampledFrom([]string{"", "run-7/1", "01J/42"}).Draw(t, "redrive")
		return d
	})
}

func genDeath() *rapid.Generator[Death] {
	return rapid.Custom(func(t *rapid.T) Death {
		return Death{
			Reason: rapid.SampledFrom(DeathReasons()).Draw(t, "reason"),
			Group:  genAnyText().Draw(t, "group"), Dispatcher: genAnyText().Draw(t, "dispatcher"), Version: genAnyText().Draw(t, "version"),
			URLHost: genAnyText().Draw(t, "host"), Message: genAnyText().Draw(t, "message"), Response: genAnyText().Draw(t, "response"),
			At: genTime().Draw(t, "at"),
		}
	})
}

// genFields are unknown fields of a newer version.
func genFields() *rapid.Generator[Fields] {
	value := rapid.Custom(func(t *rapid.T) json.RawMessage {
		return json.RawMessage(rapid.SampledFrom([]string{`null`, `7`, `1e999`, `"é\n"`, `{"a":[1,{}]}`, `[]`, `true`}).Draw(t, "json"))
	})
	return rapid.Custom(func(t *rapid.T) Fields {
		n := rapid.IntRange(0, 3).Draw(t, "fields")
		var f Fields
		for i := range n {
			if f == nil {
				f = Fields{}
			}
			f[fmt.Sprintf("x_%d%s", i, rapid.StringMatching(`[a-z"é ]{0,3}`).Draw(t, "name"))] = value.Draw(t, "value")
		}
		return f
	})
}

func genHold() *rapid.Generator[Hold] {
	return rapid.Custom(func(t *rapid.T) Hold {
		return Hold{
			Scope: rapid.SampledFrom([]HoldScope{HoldAll, HoldTenant, HoldHost, HoldWebhook}).Draw(t, "scope"),
			Value: rapid.String().Draw(t, "value"), By: rapid.String().Draw(t, "by"),
			At: genTime().Draw(t, "at"), Reason: rapid.String().Draw(t, "reason"), Extra: genFields().Draw(t, "extra"),
		}
	})
}

func genState() *rapid.Generator[State] {
	return rapid.Custom(func(t *rapid.T) State {
		s := State{
			Webhook:             genWebhookID().Draw(t, "webhook"),
			ConsecutiveFailures: rapid.IntRange(0, 100).Draw(t, "streak"),
			StreakStartedAt:     genTime().Draw(t, "streak at"),
			PausedAt:            genTime().Draw(t, "paused at"),
			HoldUntil:           genTime().Draw(t, "hold until"),
			LastStatus:          rapid.OneOf(rapid.Just(0), rapid.IntRange(100, 999)).Draw(t, "status"),
			LastError:           text(genAnyText().Draw(t, "error"), maxErrorText),
			Version:             rapid.Int64Min(0).Draw(t, "version"),
			Extra:               genFields().Draw(t, "extra"),
		}
		s.Status = Active
		for _, r := range rapid.SliceOfN(rapid.SampledFrom([]PauseReason{PauseFailures, PauseManual, PauseGone, PauseConfig, PauseDisabled}), 0, 5).Draw(t, "reasons") {
			s.AddPause(r)
		}
		if rapid.Bool().Draw(t, "has head") {
			s.Head = &Head{Source: genSource().Draw(t, "head"), Attempts: rapid.IntRange(0, 50).Draw(t, "attempts"), DueAt: genTime().Draw(t, "due"), Extra: genFields().Draw(t, "head extra")}
		}
		for range rapid.IntRange(0, 3).Draw(t, "more heads") {
			s.SetHead(Head{Source: genSource().Draw(t, "head"), Attempts: rapid.IntRange(0, 50).Draw(t, "attempts"), Key: OrderingKeyHash(rapid.String().Draw(t, "key")), Parked: rapid.Bool().Draw(t, "parked")})
		}
		if rapid.Bool().Draw(t, "has parked") {
			s.Parked = &Parked{
				From: rapid.Int64Min(0).Draw(t, "from"), Last: rapid.Int64Min(0).Draw(t, "last"), Count: rapid.Int64Min(0).Draw(t, "count"),
				OldestAt: genTime().Draw(t, "oldest"), Extra: genFields().Draw(t, "parked extra"),
			}
			if done := rapid.SliceOfN(rapid.Int64Min(0), 0, 4).Draw(t, "done"); len(done) > 0 {
				s.Parked.Done = done
			}
		}
		if rapid.Bool().Draw(t, "has hold") {
			h := genHold().Draw(t, "hold")
			s.Hold = &h
		}
		return s
	})
}

func genEndpoint() *rapid.Generator[Endpoint] {
	return rapid.Custom(func(t *rapid.T) Endpoint {
		e := Endpoint{
			ID:          genWebhookID().Draw(t, "id"),
			Tenant:      rapid.StringN(0, 50, 256).Draw(t, "tenant"),
			URL:         "https://" + rapid.StringMatching(`[a-z]{1,20}\.example(:[1-9][0-9]{0,3})?(/[a-z<>&]{0,9})?`).Draw(t, "url"),
			Description: rapid.StringN(0, 50, 1024).Draw(t, "description"),
			Timeout:     Duration(rapid.Int64Range(int64(minTimeout), int64(maxTimeout)).Draw(t, "timeout")),
			MaxAttempts: rapid.IntRange(0, maxMaxAttempts).Draw(t, "attempts"),
			Ordering:    rapid.SampledFrom([]Ordering{"", OrderFirstAttempt, OrderStrict, OrderKey, OrderStrictKey, OrderNone}).Draw(t, "ordering"),
			RateLimit:   float64(rapid.IntRange(0, 1000).Draw(t, "rate")) / 8,
			RetryOn:     rapid.SampledFrom([]RetryOn{"", RetryAny, RetryTransient}).Draw(t, "retry on"),
			Jitter:      rapid.SampledFrom([]Jitter{"", JitterAdditive, JitterFull}).Draw(t, "jitter"),
			AutoResume:  Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "resume")),
			CreatedAt:   genTime().Draw(t, "created"),
			UpdatedAt:   genTime().Draw(t, "updated"),
			UpdatedBy:   rapid.StringN(0, 20, 100).Draw(t, "by"),
			Extra:       genFields().Draw(t, "extra"),
		}
		e.URLHost = hostOf(e.URL)
		if !e.singleFile() {
			e.MaxInFlight = rapid.IntRange(0, 100).Draw(t, "in flight")
		}
		if types := rapid.SliceOfN(rapid.StringN(1, 20, 100), 0, 3).Draw(t, "types"); len(types) > 0 {
			e.EventTypes = types
		}
		if n := rapid.IntRange(0, 3).Draw(t, "secrets"); n > 0 {
			for range n {
				e.Secrets = append(e.Secrets, Secret{
					Value: rapid.StringN(1, 50, 200).Draw(t, "secret"), CreatedAt: genTime().Draw(t, "secret at"),
					ExpiresAt: genTime().Draw(t, "secret until"), Extra: genFields().Draw(t, "secret extra"),
				})
			}
		}
		if schedule := rapid.SliceOfN(rapid.Int64Range(int64(minScheduleDelay), int64(maxScheduleDelay)), 0, 4).Draw(t, "schedule"); len(schedule) > 0 {
			for _, delay := range schedule {
				e.Schedule = append(e.Schedule, Duration(delay))
			}
		}
		if rapid.Bool().Draw(t, "has pause") {
			n := rapid.IntRange(0, 100).Draw(t, "pause after")
			e.AutoPauseAfter = &n
		}
		if rapid.Bool().Draw(t, "has enabled") {
			on := rapid.Bool().Draw(t, "enabled")
			e.Enabled = &on
		}
		if rapid.Bool().Draw(t, "has headers") {
			e.Headers = map[string]string{"X-Api-Key": rapid.StringMatching(`[!-~]{1,20}`).Draw(t, "header"), "Authorization": "Bearer a b"}
		}
		if rapid.Bool().Draw(t, "has tls") {
			e.TLS = &TLS{CA: rapid.String().Draw(t, "ca"), Cert: rapid.String().Draw(t, "cert"), Key: rapid.String().Draw(t, "key"), Extra: genFields().Draw(t, "tls extra")}
		}
		return e
	})
}

func genAttempt() *rapid.Generator[Attempt] {
	return rapid.Custom(func(t *rapid.T) Attempt {
		src := genSource().Draw(t, "source")
		a := Attempt{
			Webhook: genWebhookID().Draw(t, "webhook"), EventID: genEventID().Draw(t, "event"), EventType: genAnyText().Draw(t, "type"),
			Outcome: rapid.SampledFrom([]Outcome{Delivered, Failed, Dead, Duplicate, Filtered}).Draw(t, "outcome"), Next: NextNone,
			Error: genAnyText().Draw(t, "error"), ProducedAt: genTime().Draw(t, "produced"), URLHost: genAnyText().Draw(t, "host"),
			SourceTopic: src.Topic, SourcePartition: src.Partition, SourceOffset: src.Offset,
			Dispatcher: genAnyText().Draw(t, "dispatcher"), Version: genAnyText().Draw(t, "version"),
		}
		if a.Outcome == Duplicate || a.Outcome == Filtered || a.Outcome == Dead && rapid.Bool().Draw(t, "no request") {
			return a
		}
		a.Attempt = rapid.IntRange(1, 50).Draw(t, "attempt")
		a.Status = rapid.OneOf(rapid.Just(0), rapid.IntRange(100, 999)).Draw(t, "status")
		a.StartedAt = At(time.UnixMilli(rapid.Int64Range(0, 1e12).Draw(t, "started")))
		a.DurationMS = rapid.Int64Range(0, 1e6).Draw(t, "duration")
		a.ResponseExcerpt = genAnyText().Draw(t, "response")
		if a.DueAt = genTime().Draw(t, "due"); !a.DueAt.IsZero() {
			a.LatenessMS = rapid.Int64Range(0, 1e6).Draw(t, "lateness")
		}
		if a.Outcome == Failed {
			a.Next = rapid.SampledFrom([]Next{NextRetry, NextParked}).Draw(t, "next")
			a.NextAttemptAt = genTime().Draw(t, "next at")
		}
		return a
	})
}
