package delivery

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxExcerpt = 512
	maxDetail  = 256
	ellipsis   = "…"
	// minSecret is the length from which on a part of the URL, or a header's
	// value, is taken for a token. Shorter ones are words, and blotting out words
	// makes an excerpt useless.
	minSecret = 8
)

// excerpt makes the beginning of an answer's body fit to be shown. Error pages
// like to repeat the request ("Cannot POST /hooks/TOKEN"), so what is secret in
// it is blotted out.
func (e *Endpoint) excerpt(head []byte, more bool, encoding string) string {
	if encoding = strings.ToLower(strings.TrimSpace(encoding)); encoding != "" && encoding != "identity" {
		return clean("("+encoding+", not decoded)", maxExcerpt)
	}
	if more {
		head = e.trimPart(head)
	}
	return clean(e.blot(string(head)), maxExcerpt)
}

func (e *Endpoint) blot(s string) string {
	for _, secret := range e.secrets {
		s = strings.ReplaceAll(s, secret, "[redacted]")
	}
	return s
}

// trimPart cuts the beginning of a secret off the end of head, where the rest of
// it was not read.
func (e *Endpoint) trimPart(head []byte) []byte {
	for _, secret := range e.secrets {
		for n := min(len(secret)-1, len(head)); n > 0; n-- {
			if bytes.HasSuffix(head, []byte(secret[:n])) {
				head = head[:len(head)-n]
				break
			}
		}
	}
	return head
}

// secretsOf lists, longest first, what must not be shown of a request: the path
// and query as they were sent, their longer parts, and header values.
func secretsOf(pathAndQuery string, parts []string) []string {
	var secrets []string
	if pathAndQuery != "/" {
		secrets = append(secrets, pathAndQuery)
	}
	for _, p := range parts {
		if len(p) >= minSecret {
			secrets = append(secrets, p)
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(secrets)
}

// clean makes one line of printable text of s, at most limit bytes.
func clean(s string, limit int) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) || r == ' ' {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte(' ')
			gap = false
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			return cutText(b.String(), limit)
		}
		b.WriteRune(r)
	}
	return strings.TrimSuffix(b.String(), " ")
}

func cutText(s string, limit int) string {
	end := min(len(s), limit-len(ellipsis))
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
