// Package crash kills dispatcher processes and brokers, and proves that nothing
// is lost, doubled or late.
//
// The dispatchers are the real binary, each a process of its own; the embedded
// broker and the receiver live in the test. It is a package of its own because
// its tests start processes and take minutes:
//
//	make test-crash
//	REENVIO_TEST_KAFKA=apache REENVIO_TEST_SEED=17 go test -count=1 -v -run TestCrash ./e2e/crash
//
// It refuses to look inside a dispatcher: what it knows is what the receiver saw,
// what the topics hold, what the group says, and the logs.
package crash
