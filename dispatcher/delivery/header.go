package delivery

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// The headers that every request carries. The trio of Standard Webhooks is in
// lower case on the wire, as its specification writes it.
const (
	headerContentType = "Content-Type"
	headerUserAgent   = "User-Agent"
	headerEventID     = "X-Webhook-Event-Id"
	headerAttempt     = "X-Webhook-Delivery-Attempt"
	headerEventType   = "X-Webhook-Event-Type"
	headerID          = "webhook-id"
	headerTimestamp   = "webhook-timestamp"
	headerSignature   = "webhook-signature"
	headerTraceparent = "Traceparent"
	headerTracestate  = "Tracestate"
)

const (
	defaultContentType = "application/json"
	oursAtMost         = 10 // all of the above
	oursUsually        = 8  // without a trace: what a map of Go holds without growing
)

// reserved are the headers, in lower case, that an endpoint's own can't set:
// ours, and those that belong to the connection or to the framing of the body.
var reserved = map[string]bool{
	"content-type": true, "user-agent": true, "x-webhook-event-id": true, "x-webhook-delivery-attempt": true,
	"x-webhook-event-type": true, "webhook-id": true, "webhook-timestamp": true, "webhook-signature": true,
	"host": true, "content-length": true, "transfer-encoding": true, "connection": true, "keep-alive": true,
	"proxy-connection": true, "proxy-authorization": true, "te": true, "trailer": true, "upgrade": true, "expect": true,
}

// prepareHeaders returns an endpoint's own headers. One of a reserved name is
// left out rather than refused: a name may become reserved later, and must not
// stop a webhook that works. A malformed one would fail every request.
func prepareHeaders(own map[string]string) (http.Header, error) {
	headers := make(http.Header, len(own))
	for _, name := range slices.Sorted(maps.Keys(own)) {
		value := strings.Trim(own[name], " \t")
		if !isToken(name) {
			return nil, fmt.Errorf("the name %s is no header name", strconv.QuoteToASCII(name))
		}
		if !visible(value) {
			return nil, fmt.Errorf("the value of %s is not visible ASCII", name)
		}
		if reserved[strings.ToLower(name)] {
			continue
		}
		headers[http.CanonicalHeaderKey(name)] = []string{value}
	}
	return headers, nil
}

// isToken says that a header may have the name s (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && !(c >= '0' && c <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// visible says that s is visible ASCII with blanks between at most: what every
// HTTP implementation takes for a header's value.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] > '~' {
			return false
		}
	}
	return true
}

// headers are those of one request. What comes from the event and is no legal
// value is left out, and the event delivered without it.
func (s *Sender) headers(a Attempt, at time.Time, signature string) http.Header {
	d := a.Delivery
	h := make(http.Header, len(a.Endpoint.headers)+oursUsually)
	maps.Copy(h, a.Endpoint.headers)
	values := make([]string, 0, oursAtMost)
	set := func(name, value string) {
		values = append(values, value)
		n := len(values)
		h[name] = values[n-1 : n : n]
	}
	contentType := strings.Trim(d.ContentType, " \t")
	if contentType == "" || !visible(contentType) {
		contentType = defaultContentType
	}
	set(headerContentType, contentType)
	set(headerUserAgent, s.userAgent)
	set(headerEventID, d.ID)
	set(headerAttempt, strconv.Itoa(a.Number))
	if t := strings.Trim(d.Type, " \t"); t != "" && visible(t) {
		set(headerEventType, t)
	}
	set(headerID, d.ID)
	set(headerTimestamp, strconv.FormatInt(at.Unix(), 10))
	set(headerSignature, signature)
	if validTraceparent(d.Traceparent) {
		set(headerTraceparent, d.Traceparent)
		if state := tracestate(d); state != "" {
			set(headerTracestate, state)
		}
	}
	return h
}

// validTraceparent checks the form of W3C Trace Context level 1, 3.2: version,
// trace id, parent id and flags in lower-case hexadecimal, ids not all zero. A
// later version may have more after the flags.
func validTraceparent(s string) bool {
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || !visible(s) {
		return false
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:55]
	if !isHex(version) || !isHex(trace) || !isHex(parent) || !isHex(flags) {
		return false
	}
	if version == "ff" || (len(s) > 55 && (version == "00" || s[55] != '-')) {
		return false
	}
	return strings.Trim(trace, "0") != "" && strings.Trim(parent, "0") != ""
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// tracestate is the event's header of that name, which means nothing without a
// traceparent. One beyond the 512 bytes that everybody must pass on is left out.
func tracestate(d *record.Delivery) string {
	for _, h := range d.Headers {
		if h.Key == "tracestate" && len(h.Value) <= 512 && visible(string(h.Value)) {
			return strings.Trim(string(h.Value), " \t")
		}
	}
	return ""
}
