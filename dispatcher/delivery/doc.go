// Package delivery makes one HTTP request and says what came of it.
//
// It is for the dispatcher, which decides when a request goes out and what
// follows from its Result. One code path builds every request, first attempts,
// retries and tests alike; one function turns whatever happened into a value
// from a closed set.
//
// It refuses to follow redirects, to connect to an address that the egress rule
// does not allow (checked on the very address that is dialed), to decompress or
// to read without bound what an endpoint answers, to repeat a request that the
// endpoint may have seen, and to put a URL's path or a secret into a Result. It
// knows no Kafka, no schedule and no streak.
package delivery
