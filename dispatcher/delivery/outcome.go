package delivery

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// outcome is what a request came to: judge makes it of an answer, explain of an
// error.
type outcome struct {
	class   Class
	failure Failure
	detail  string
}

// judge decides by the header of an answer alone.
func judge(answer *http.Response, transient bool) outcome {
	status := answer.StatusCode
	if status == 200 || status == 201 || status == 202 || status == 204 {
		return outcome{class: ClassDelivered}
	}
	text := "HTTP " + strconv.Itoa(status)
	if known := http.StatusText(status); known != "" {
		text += " " + known
	}
	switch {
	case status >= 300 && status <= 399:
		return outcome{ClassFailed, FailureRedirect, text + target(answer.Header.Get("Location")) + "; redirects are not followed"}
	case transient && status == http.StatusGone:
		return outcome{ClassGone, FailureStatus, text}
	case transient && permanent[status]:
		return outcome{ClassPermanent, FailureStatus, text}
	}
	return outcome{ClassFailed, FailureStatus, text}
}

// permanent are the statuses that no further attempt changes, for webhooks with
// retry_on: transient.
var permanent = map[int]bool{400: true, 401: true, 403: true, 404: true, 405: true, 413: true, 415: true, 422: true}

// target names the host that a redirect points to. The rest of the Location may
// hold a token.
func target(location string) string {
	if location == "" {
		return ""
	}
	u, err := url.Parse(location)
	switch {
	case err != nil:
		return " to an unreadable Location"
	case u.Host == "":
		return " to the same host"
	}
	return fmt.Sprintf(" to %s://%s", clean(u.Scheme, 10), clean(u.Host, 150))
}

// retryAfter reads the wait that an answer asks for (RFC 9110, 10.2.3).
func retryAfter(answer *http.Response, now time.Time) time.Duration {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := answer.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		// Bounded here so that no policy's arithmetic can overflow.
		return time.Duration(min(seconds, 1<<31)) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
