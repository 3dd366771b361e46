// Package overview tells from Kafka alone how a Reenvio is doing: who owns which partition numbers, what waits where and why, which
// webhooks are paused or held, what died in the last hour, and what a person should do about it. It needs no dispatcher that answers:
// it is for the moment when none does.
//
// It only reads, and it keeps nothing between calls. Compacted topics (state, endpoints) are read whole, as a dispatcher does at its
// start. Of the others it reads what is not done yet, up to a bound; beyond that it counts offsets, which is an upper bound, since
// markers of transactions have offsets too. Every figure that is one says so.
//
// It refuses to guess: whether a request runs at this moment only its dispatcher knows, and "in flight" here means that nothing else
// holds the event. A moment passes between two reads, so the figures of a busy pipeline need not add up.
package overview
