package delivery

import (
	"errors"
	"net/http"
)

// exchange sends the request and returns the answer as soon as its header is
// there. release frees what the answer holds, after its body.
//
// When the connection turns out to be dead, one second try is made over a new
// one, inside the same attempt, if the endpoint can't have processed the request.
// The usual case is an idle connection that the endpoint closes just as the
// request is about to go out. What net/http (Go 1.26) does about it by itself:
//
//   - HTTP/1, nothing was written to a reused connection: it takes another one,
//     idle or new, if the body was not read or GetBody gives it again.
//   - HTTP/1, the endpoint closed a reused connection: it tries again only if
//     the method is idempotent or the request has an Idempotency-Key, which a
//     POST of ours has not. With them it would also repeat requests that were
//     written and perhaps processed, so adding the key is no way.
//   - HTTP/2, GOAWAY below our stream, REFUSED_STREAM, or a connection that takes
//     no more streams: it tries up to seven times more, with pauses up to 32 s,
//     if GetBody gives the body again. It counts a stream reset with
//     PROTOCOL_ERROR as unprocessed too (go.dev/issue/47635).
//
// So GetBody answers errUnsent, which leaves the second try to us, and for
// HTTP/1 the bytes written to the connection are counted: none of them, none of
// the request. An empty body needs no GetBody; there net/http tries by itself.
func (s *Sender) exchange(t *try, request *http.Request, a Attempt) (answer *http.Response, release func(), err error) {
	release = func() {}
	transport := s.transports.of(a.Endpoint)
	answer, err = transport.RoundTrip(request)
	unsent := errors.Is(err, errUnsent) || t.reused && t.nothingSent()
	if err == nil || !unsent || request.Context().Err() != nil {
		return answer, release, err
	}
	t.again()
	connection, err := transport.NewClientConn(request.Context(), a.Endpoint.url.Scheme, a.Endpoint.address)
	if err != nil {
		return nil, release, err
	}
	t.connected = true
	release = func() { connection.Close() }
	request = request.WithContext(request.Context())
	setBody(request, a.Delivery.Value)
	answer, err = connection.RoundTrip(request)
	return answer, release, err
}
