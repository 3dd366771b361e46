package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Reference writes the table of all settings for the reference page, in Markdown. of holds the defaults. It fails on a setting that
// has no doc tag: an undocumented setting is not finished.
func Reference(of any) (string, error) {
	var page strings.Builder
	page.WriteString("| Key | Type | Default | Meaning |\n|---|---|---|---|\n")
	for _, field := range fieldsOf(of).list {
		if field.Doc == "" {
			return "", fmt.Errorf("the setting %s has no doc tag", field.Key)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", field.Key, field.Kind(), field.defaultText(), cell(field.Doc))
	}
	return page.String(), nil
}

// defaultText is a value, or the words that describe one.
func (f Field) defaultText() string {
	text := cmp.Or(f.Default, f.Text())
	if text == "" || strings.Contains(text, " ") {
		return cell(text)
	}
	return "`" + cell(text) + "`"
}

// cell keeps text inside its table cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
