package delivery

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

var errNoActiveSecret = errors.New("every secret of the webhook has expired: rotate its secret")

// localFaults are errors of this machine: no endpoint can cause them.
var localFaults = []syscall.Errno{
	syscall.EMFILE, syscall.ENFILE, // no file descriptor left, in this process or at all
	syscall.EADDRNOTAVAIL,           // no local port left
	syscall.ENOBUFS, syscall.ENOMEM, // no memory for sockets
}

// explain decides what an error comes to. ctx is the caller's, without the
// deadline of the attempt. The order matters: an error may be of several kinds,
// since all addresses of a host are tried.
func explain(ctx context.Context, t *try, err error, e *Endpoint) outcome {
	failed := func(f Failure, detail string) outcome { return outcome{ClassFailed, f, detail} }
	if ctx.Err() != nil {
		return outcome{ClassCancelled, FailureCancelled, "stopped by the dispatcher"}
	}
	if blocked, ok := errors.AsType[*blockedError](err); ok {
		return failed(FailureURLBlocked, blocked.why)
	}
	if errors.Is(err, errNoActiveSecret) {
		return failed(FailureConfig, err.Error())
	}
	if fault, ok := localFault(err); ok {
		return outcome{ClassOurs, FailureLocal, "on this machine: " + fault.Error()}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return failed(FailureTimeout, fmt.Sprintf("no answer within %s: stopped while %s", e.timeout, stage(t.stage.Load())))
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return failed(FailureDNS, dnsDetail(dns))
	}
	if errors.Is(err, syscall.ETIMEDOUT) {
		return failed(FailureTimeout, "the endpoint's machine stopped answering")
	}
	if detail, ok := tlsDetail(err); ok {
		return failed(FailureTLS, detail)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return failed(FailureRefused, "connection refused")
	}
	if ended(err) {
		return failed(FailureReset, "the connection ended before the answer")
	}
	if !t.connected {
		return failed(FailureConnect, "could not connect: "+connectDetail(err))
	}
	if reset, ok := errors.AsType[streamError](err); ok {
		return failed(FailureReset, fmt.Sprintf("the endpoint reset the stream (HTTP/2 error code %d)", reset.Code))
	}
	// What is left has no type. Over HTTP/2 it is a connection given up, by GOAWAY
	// or for want of a ping; over HTTP/1 one closed before it was used, or bytes
	// that are not HTTP.
	if t.http2 || t.nothingSent() {
		return failed(FailureReset, "the connection ended before the answer")
	}
	return failed(FailureProtocol, "what came is no HTTP answer: "+e.blot(err.Error()))
}

func localFault(err error) (syscall.Errno, bool) {
	dns, ofDNS := errors.AsType[*net.DNSError](err)
	for _, fault := range localFaults {
		// The resolver keeps nothing of an error but its text.
		if errors.Is(err, fault) || ofDNS && strings.HasSuffix(dns.Err, fault.Error()) {
			return fault, true
		}
	}
	return 0, false
}

// dnsDetail leaves out the address of the name server, which is our network's.
func dnsDetail(err *net.DNSError) string {
	switch {
	case err.IsNotFound:
		return "no such host"
	case err.IsTimeout:
		return "the name server did not answer"
	}
	return "the host name could not be resolved"
}

func tlsDetail(err error) (string, bool) {
	// An alert has no type of its own outside QUIC. With TLS 1.3 it may come after
	// the handshake, with the first read: a client certificate that is refused, for
	// one.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return "the endpoint refused: " + op.Err.Error(), true
	}
	handshake, ok := errors.AsType[*handshakeError](err)
	if !ok {
		return "", false
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return certificate.Err.Error(), true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the endpoint does not speak TLS", true
	}
	if ended(err) {
		return "the connection ended in the TLS handshake", true
	}
	return handshake.Error(), true
}

// ended says that the other end closed or reset the connection.
func ended(err error) bool {
	for _, kind := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, net.ErrClosed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// connectDetail takes the kernel's word only: what stands around it has the
// addresses of both ends.
func connectDetail(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if errors.Is(err, errNoRoute6) {
		return errNoRoute6.Error()
	}
	return "no address answered"
}

// streamError has the fields of net/http's own type for an HTTP/2 stream that
// was reset, which lets itself be read as any such struct (net/http/h2_error.go).
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream reset" }
