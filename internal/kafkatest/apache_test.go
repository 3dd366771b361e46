package kafkatest_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// onApache leaves a test out of `make test`, which starts no processes.
func onApache(t *testing.T) {
	t.Helper()
	if !kafkatest.OnApache() {
		t.Skip("runs with REENVIO_TEST_KAFKA=apache")
	}
}

func TestApache(t *testing.T) {
	onApache(t)
	roundTrip(t, kafkatest.Apache(t))
}

func TestBrokersOfApacheDieAndComeBack(t *testing.T) {
	onApache(t)
	brokersDieAndComeBack(t, kafkatest.Apache(t))
}

// TestApacheWithAnOlderTransactionProtocol: with transaction.version 1 a client
// may not commit offsets in a transaction at version 5 or above.
func TestApacheWithAnOlderTransactionProtocol(t *testing.T) {
	onApache(t)
	c := kafkatest.Apache(t, kafkatest.Feature("transaction.version", 1))
	if got := transactionVersion(t, c); got != 1 {
		t.Fatalf("transaction.version is %d, want 1", got)
	}
	roundTrip(t, c)
}

func transactionVersion(t *testing.T, c *kafkatest.Cluster) int16 {
	t.Helper()
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), c.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" {
			return f.MaxVersionLevel
		}
	}
	return 0
}
