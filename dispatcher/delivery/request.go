package delivery

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/reenvio/reenvio/internal/signing"
)

// errUnsent is what net/http gets when it asks for the body a second time. It
// asks only when it holds that the endpoint has not processed the request, so
// this error says just that; see exchange.
var errUnsent = errors.New("the request was not processed")

// request builds every request there is: first attempts, retries, tests.
//
// The body is the event's value itself, the slice that was signed. It is not
// parsed through http.NewRequest, which would read the URL again each time.
func (s *Sender) request(ctx context.Context, a Attempt, at time.Time, keys []signing.Key) *http.Request {
	value := a.Delivery.Value
	request := (&http.Request{
		Method:     http.MethodPost,
		URL:        a.Endpoint.url,
		Host:       a.Endpoint.url.Host,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     s.headers(a, at, signing.Sign(keys, a.Delivery.ID, at, value)),
	}).WithContext(ctx)
	setBody(request, value)
	return request
}

// setBody sets the value as the body; an empty one goes with "Content-Length: 0".
func setBody(request *http.Request, value []byte) {
	if len(value) == 0 {
		request.Body = http.NoBody
		return
	}
	request.Body = io.NopCloser(bytes.NewReader(value))
	request.ContentLength = int64(len(value))
	request.GetBody = func() (io.ReadCloser, error) { return nil, errUnsent }
}
