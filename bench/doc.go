// Package bench measures what Reenvio promises, on the machine it runs on: the
// commands `reenvio bench ...`. Each benchmark answers with rows (figures, their
// bounds, and a verdict), brings its own broker, receivers and load, and talks to
// loopback only. It knows nothing of configuration, and prints nothing.
//
// Its tests have a benchmark of another kind, of deliveries per second. A number
// of one machine says little on another, so what is reported is a ratio: the
// dispatcher beside a bare loop that consumes the same events and POSTs them,
// without signing, order, retries or transactions, in the same run, with the same
// broker, the same receiver and as many requests at a time. 1.0 would mean that
// all of the dispatcher's promises are free.
//
//	make bench
//	go test -run '^$' -bench Deliveries -benchtime 3x ./bench -events 200000
//
// Broker, receiver and sender share the machine's cores. It measures throughput
// only, of events that are all delivered at the first attempt; it is no test of
// anything else.
package bench
