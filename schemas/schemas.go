// Package schemas is the wire contract for programs in any language: a JSON
// Schema (2020-12) for each JSON record and each set of headers, and golden
// records to test a reader against. Go only embeds the files; see README.md for
// which file is what.
package schemas

import "embed"

// FS holds the schemas at its root and the golden records under golden/.
//
//go:embed *.schema.json golden
var FS embed.FS
