package delivery

import "time"

// Class says what follows from a request. It is decided in one place, and
// drives retry, pause and log alike.
type Class string

const (
	// ClassDelivered: the endpoint answered 200, 201, 202 or 204.
	ClassDelivered Class = "delivered"
	// ClassFailed: another answer or none; it may be tried again.
	ClassFailed Class = "failed"
	// ClassPermanent: an answer that the webhook's retry_on: transient calls final.
	ClassPermanent Class = "permanent"
	// ClassGone: 410 under retry_on: transient; the webhook is to be paused.
	ClassGone Class = "gone"
	// ClassOurs: a fault of this process or its machine (no file descriptor or
	// port left). It burns no attempt and counts in no streak.
	ClassOurs Class = "ours"
	// ClassCancelled: the caller's context ended before an answer. Nothing is
	// known of the endpoint, so nothing may be recorded of it.
	ClassCancelled Class = "cancelled"
)

// Failure says why a request did not deliver: a value for webhook-last-error,
// the attempt log and the metric label "reason".
type Failure string

const (
	FailureNone       Failure = ""
	FailureStatus     Failure = "status"      // an answer that is no success
	FailureRedirect   Failure = "redirect"    // 3xx: redirects are answers, never followed
	FailureTimeout    Failure = "timeout"     // the endpoint's timeout passed; Detail names the stage
	FailureDNS        Failure = "dns"         // the name could not be resolved
	FailureRefused    Failure = "refused"     // connection refused
	FailureConnect    Failure = "connect"     // no connection for another reason (no route, host unreachable)
	FailureTLS        Failure = "tls"         // handshake or certificate
	FailureReset      Failure = "reset"       // the connection ended before the answer
	FailureProtocol   Failure = "protocol"    // what came is not an HTTP answer
	FailureURLBlocked Failure = "url_blocked" // the egress rule forbids the address or the scheme
	FailureConfig     Failure = "config"      // the webhook's own settings allow no request (no secret is active)
	FailureLocal      Failure = "local"       // with ClassOurs
	FailureCancelled  Failure = "cancelled"   // with ClassCancelled
)

// Failures lists every Failure but FailureNone, for whoever needs the closed
// set (metrics, documentation).
func Failures() []Failure {
	return []Failure{
		FailureStatus, FailureRedirect, FailureTimeout, FailureDNS, FailureRefused, FailureConnect, FailureTLS,
		FailureReset, FailureProtocol, FailureURLBlocked, FailureConfig, FailureLocal, FailureCancelled,
	}
}

// Result is what came of one attempt.
type Result struct {
	Class   Class
	Status  int     // HTTP status; 0 when there was no answer
	Failure Failure // FailureNone exactly when Class is ClassDelivered
	// Detail is the failure in words for a person, at most 256 bytes of printable
	// text. It never holds the URL's path or query, a header value or a secret.
	Detail    string
	StartedAt time.Time // also the webhook-timestamp of the request
	// Duration runs from StartedAt until the outcome was certain: the answer's
	// header, or the error. Reading the body is not part of it.
	Duration time.Duration
	URLHost  string // host, and port where the URL has one
	// Excerpt is the beginning of the body of an answer that is no success:
	// printable text, at most 512 bytes, with the endpoint's own path, query and
	// header values blotted out.
	Excerpt string
	// RetryAfter is the wait that a 429 or 503 asked for by a valid Retry-After
	// (seconds or date); 0 without one. It is not capped to any policy.
	RetryAfter time.Duration
	Reused     bool // the connection had carried a request before
	// SecondTry: the request was made twice, because the first connection failed
	// and the endpoint can't have processed it; the outcome is that of the second.
	SecondTry bool
}

func (r *Result) conclude(o outcome) {
	r.Class, r.Failure, r.Detail = o.class, o.failure, clean(o.detail, maxDetail)
}
