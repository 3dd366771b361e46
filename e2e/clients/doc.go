// Package clients sends events with clients that are not ours, and proves that
// each arrives as it was written: kcat and Python on librdkafka, and Java.
//
// A producer needs nothing of Reenvio but the name of a topic, so what other
// clients can write is what the pipeline has to take: another partitioner, every
// compression, transactions, and records that no producer of ours would make. It
// is a package of its own because its tests start programs that Go does not bring
// along:
//
//	make test-clients
//	REENVIO_TEST_KAFKA=apache go test -count=1 -v -run 'TestClients/java/null' ./e2e/clients
//
// It refuses to go on without one of them: a client that is left out unseen is not
// tested.
package clients
