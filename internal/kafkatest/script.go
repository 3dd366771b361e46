package kafkatest

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"time"
)

// Response is how a receiver answers one request.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	// Delay is waited before anything is answered.
	Delay time.Duration
	// Hang answers nothing until the client leaves.
	Hang bool
	// Reset breaks the connection, after Delay, with a TCP reset.
	Reset bool
}

// Script decides the answer to a request. It may be called from many goroutines
// at once, and must not keep or change the request.
type Script func(*Request) Response

// Always answers every request with one status.
func Always(status int) Script {
	return func(*Request) Response { return Response{Status: status} }
}

// ByAttempt answers the n-th attempt of every event with the n-th status, and
// later ones with the last.
func ByAttempt(statuses ...int) Script {
	return func(q *Request) Response {
		return Response{Status: statuses[min(max(q.Attempt, 1), len(statuses))-1]}
	}
}

// FailFirst fails the first n attempts of every event with 500; then 200.
func FailFirst(n int) Script {
	return func(q *Request) Response {
		if q.Attempt <= n {
			return Response{Status: http.StatusInternalServerError}
		}
		return Response{Status: http.StatusOK}
	}
}

// FailSome fails the first n attempts of a fraction of the events, chosen by a
// hash of their ids, so that another run fails the same ones; all else is 200.
func FailSome(fraction float64, n int) Script {
	fail := FailFirst(n)
	return func(q *Request) Response {
		if Chosen(q.EventID, fraction) {
			return fail(q)
		}
		return Response{Status: http.StatusOK}
	}
}

// Chosen says whether an event is among those that FailSome fails.
func Chosen(eventID string, fraction float64) bool {
	// Not FNV: it gives ids that differ in their last digit nearly the same value,
	// and ten failures in a row pause a webhook.
	h := sha256.Sum256([]byte(eventID))
	return float64(binary.BigEndian.Uint32(h[:])) < fraction*(1<<32)
}

// After delays every answer of a script.
func After(delay time.Duration, s Script) Script {
	return func(q *Request) Response {
		r := s(q)
		r.Delay += delay
		return r
	}
}
