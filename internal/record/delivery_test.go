package record

import "testing"

func TestDeliverySizeCountsAllBytes(t *testing.T) {
	d, _ := FromEvent(eventAt("key", []byte("value"), header("name", "12"), header("webhook-redrive", "r/1")))
	if got := d.Size(); got != 3+5+4+2 {
		t.Errorf("%d bytes", got)
	}
}

// A delivery made by hand, without a record's key, is still keyed to its webhook.
func TestDeliveryKeyDefaultsToTheWebhook(t *testing.T) {
	d := Delivery{Event: Event{Webhook: "w"}}
	if r := d.RetryRecord("t", 0); string(r.Key) != "w" {
		t.Errorf("key %q", r.Key)
	}
}
