// Package chaos hurts a pipeline on Apache Kafka for a chosen time, with a seed that
// draws what is done to it, and proves its history at the end:
//
//	make chaos MINUTES=10 SEED=17
//
// Three brokers, up to four dispatchers as processes, and between each dispatcher
// and the brokers a proxy. Dispatchers are killed, stopped, ended, started, and come
// and go; brokers are killed, one or all, also the one that coordinates; leaders move;
// connections are cut, slowed down and reset. Meanwhile webhooks of all orderings are
// delivered, fail, hang, are paused, held, changed in each thing that their next attempt
// must use, deleted and made again; events are sent twice, and dead ones again.
//
// It ends with a line of totals, which REENVIO_TEST_TOTALS keeps as JSON, so that runs can
// be added up. A run that has left out one kind of traffic fails.
//
// The seed decides what happens to whom and for how long, in which order; when
// exactly is the machine's. It refuses to excuse a request: what is extra must be
// explained by an incident, which begins with a fault of the plan, and with what the
// dispatcher it was done to says of it.
package chaos
