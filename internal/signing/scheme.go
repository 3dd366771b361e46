package signing

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
)

// scheme appends "<version>,<base64>" for the message head+body to dst.
type scheme func(dst, head, body []byte) []byte

func v1(secret []byte) scheme {
	return func(dst, head, body []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(head)
		mac.Write(body)
		return base64.StdEncoding.AppendEncode(append(dst, "v1,"...), mac.Sum(nil))
	}
}

func v1a(private ed25519.PrivateKey) scheme {
	return func(dst, head, body []byte) []byte {
		signature := ed25519.Sign(private, slices.Concat(head, body))
		return base64.StdEncoding.AppendEncode(append(dst, "v1a,"...), signature)
	}
}
