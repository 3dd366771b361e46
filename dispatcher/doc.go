// Package dispatcher delivers events to webhooks: it is the pipeline's heart.
//
// A dispatcher owns partition numbers. Who owns number p reads events-p, every
// retry-*-p and commands-p, and alone writes state-p, so each webhook has
// exactly one owner, whose memory holds its queue, its failure streak and its
// pause. What the owner decides becomes true in one Kafka transaction a cycle:
// the records that follow from it, and the offsets of what it was decided on.
//
// A record's way through the files:
//
//	fetcher.go    polls, and hands each record to the life of its number
//	intake.go     what the record is, and where it goes: lane, due queue, parked, dead
//	webhook.go    the lane of one webhook: what may start, and when
//	request.go    one attempt over HTTP
//	outcome.go    what follows from its result
//	outbox.go     what was decided, until a transaction holds it
//	cycle.go      one transaction for all of it
//
// Around it: ownership.go (lives: who may do anything at all), lease.go (who may
// still send), restore.go and takeover.go (how a number begins), parked.go (how
// held-back events return), commands.go (pause and resume).
//
// The package refuses to guess: a number whose offsets have expired does not
// start, a life whose member id has changed decides nothing, and an outcome that
// is not committed is kept, not repeated.
package dispatcher
