package record

import (
	"maps"
	"slices"
	"strings"
)

// forbiddenHeaders can't be set by an endpoint, in lower case: those that make up
// the request itself, and those that belong to one connection (RFC 9110, section
// 7.6.1). Names with ourHeaderPrefixes can't either.
var forbiddenHeaders = []string{
	"content-type", "content-length", "user-agent", "host", "expect",
	"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
	"te", "trailer", "transfer-encoding", "upgrade",
}

// ourHeaderPrefixes are those of the headers that identify and sign a delivery.
var ourHeaderPrefixes = []string{"webhook-", "x-webhook-"}

func (c *checks) headers(headers map[string]string) {
	if len(headers) > maxHeaders {
		c.addf("headers has %d entries, the most is %d", len(headers), maxHeaders)
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		lower := strings.ToLower(name)
		shown := text(name, 64)
		switch {
		case !isToken(name):
			c.addf("headers has the name %q, want 1 to %d letters, digits and dashes (RFC 9110)", shown, maxHeaderName)
		case slices.Contains(forbiddenHeaders, lower), hasOurPrefix(lower):
			c.addf("headers has %s, which Reenvio or the connection sets", shown)
		case seen[lower]:
			c.addf("headers has %s twice, in different case", shown)
		}
		seen[lower] = true
		if !isFieldValue(headers[name]) {
			c.addf("headers.%s has a value that can't be sent, want up to %d characters of visible ASCII, spaces only inside", shown, maxHeaderValue)
		}
	}
}

func hasOurPrefix(lower string) bool {
	return slices.ContainsFunc(ourHeaderPrefixes, func(p string) bool { return strings.HasPrefix(lower, p) })
}

// isToken says whether name is a token of RFC 9110, section 5.6.2.
func isToken(name string) bool {
	if name == "" || len(name) > maxHeaderName {
		return false
	}
	for i := range len(name) {
		if !alphanumeric(name[i]) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(name[i])) {
			return false
		}
	}
	return true
}

// isFieldValue says whether value is visible ASCII with spaces inside only: the
// part of RFC 9110, section 5.5, that every server reads the same way.
func isFieldValue(value string) bool {
	if len(value) > maxHeaderValue || strings.TrimSpace(value) != value {
		return false
	}
	return printable(value)
}
