package record

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the texts we write about an event, in bytes after escaping. What is
// ours in a record is then, at most:
//
//	last-error, errors.message, last-response   3 x 1,024 = 3,072
//	host (253 of DNS + port), group             2 x 260   =   520
//	dispatcher (kafka.instance_id), version     2 x 64    =   128
//	source, moved (249 + 10 + 19 + 2), redrive  2 x 280 + 256 = 816
//	errors.topic, partition, offset             249 + 10 + 19 = 278
//	six times, reason, numbers                  6 x 24 + 64   = 208
//	24 names of up to 32 bytes with lengths     24 x 42       = 1,008
//
// about 6 KiB, while a record may be 128 KiB larger than its event.
const (
	maxErrorText    = 1024
	maxResponseText = 1024
	maxHostText     = 260
	maxGroupText    = 260
	maxInstanceText = 64
	maxVersionText  = 64
	maxTypeText     = 256
	// maxBriefText is what is left of errors when the record is too large otherwise.
	maxBriefText = 512
)

const ellipsis = "…"

// text makes s fit for a header or a log line: valid UTF-8, one line, nothing
// unprintable, at most limit bytes. What does not print is escaped as Go does
// (\n, \x1b, \ufeff), what is too long ends in an ellipsis.
//
// It is its own fixed point, text(text(s)) == text(s): a text that travels
// through ten hops is escaped once.
func text(s string, limit int) string {
	if len(s) <= limit && printable(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		piece := s[i : i+runeLen(s[i:])]
		if r == utf8.RuneError && len(piece) == 1 || !unicode.IsPrint(r) {
			piece = escape(r, piece)
		}
		if b.Len()+len(piece) > limit {
			return cut(b.String()+piece, limit)
		}
		b.WriteString(piece)
	}
	return b.String()
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// cut shortens s to at most limit bytes at a boundary between characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if limit < len(ellipsis) {
		return ""
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}

func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

const hex = "0123456789abcdef"

func escape(r rune, piece string) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	// Byte by byte: what is unprintable is rare, and bytes are what an analyst
	// compares with.
	var b strings.Builder
	for i := range len(piece) {
		b.WriteString(`\x`)
		b.WriteByte(hex[piece[i]>>4])
		b.WriteByte(hex[piece[i]&15])
	}
	return b.String()
}
