// Package signing signs requests as Standard Webhooks 1.0 asks
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md):
// "v1", HMAC-SHA256 with a secret that both sides hold, and "v1a", ed25519,
// where the receiver holds a public key only.
//
// It signs bytes that it is given and nothing else: it builds no request, reads
// no clock and stores no secret. It refuses weak secrets (under 24 bytes) when
// they are parsed, so that Sign can't fail.
package signing

import (
	"strconv"
	"time"
)

// Sign returns the value of the webhook-signature header: one signature per
// key, in the order of keys (newest first, so that a receiver that has the new
// secret finds its match at once), with a space between. It is empty without
// keys.
//
// The signed text is "id.timestamp.body", the timestamp being at in whole unix
// seconds: the request must carry the same number in webhook-timestamp.
func Sign(keys []Key, id string, at time.Time, body []byte) string {
	// One allocation for the part that all keys share; the body is copied for
	// none but ed25519, which can't take its message in pieces.
	head := make([]byte, 0, len(id)+22)
	head = append(head, id...)
	head = append(head, '.')
	head = strconv.AppendInt(head, at.Unix(), 10)
	head = append(head, '.')

	var out []byte
	for i, key := range keys {
		if i > 0 {
			out = append(out, ' ')
		}
		out = key.sign(out, head, body)
	}
	return string(out)
}
