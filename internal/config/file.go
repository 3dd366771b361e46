package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	yamlv3 "go.yaml.in/yaml/v3"
)

func fromFile(path string) (source, error) {
	if path == "" {
		return source{}, nil
	}
	data, err := readFile(path)
	if err != nil {
		return source{}, err
	}
	parsed, err := yaml.Parser().Unmarshal(data)
	if err != nil {
		return source{}, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	file := koanf.New(delimiter)
	if err := file.Load(confmap.Provider(parsed, delimiter), nil); err != nil {
		return source{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := oneDocument(data); err != nil {
		return source{}, fmt.Errorf("%s: %w", path, err)
	}
	lines, err := linesOf(data)
	if err != nil {
		return source{}, fmt.Errorf("%s: %w", path, err)
	}
	return source{
		name:   path,
		values: file.All(),
		place:  func(key string) string { return fmt.Sprintf("%s:%d", filepath.ToSlash(path), lines[key]) },
		spell:  func(key string) string { return key },
	}, nil
}

// oneDocument refuses a second document, of which the parser would say nothing.
func oneDocument(data []byte) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	var document yamlv3.Node
	_ = decoder.Decode(&document) // the first has been parsed
	if err := decoder.Decode(&document); !errors.Is(err, io.EOF) {
		return errors.New("there is a second document (---), and only the first is read: put all settings into one")
	}
	return nil
}

// linesOf finds the line of every key. The koanf parser gives values only, so the document is read a second time, as nodes. A key that
// is written both nested and with dots is refused: which of the two koanf keeps is a matter of chance.
func linesOf(data []byte) (map[string]int, error) {
	lines := map[string]int{}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(data, &document); err != nil || len(document.Content) == 0 {
		return lines, err
	}
	var walk func(n *yamlv3.Node, prefix string) error
	walk = func(n *yamlv3.Node, prefix string) error {
		if n.Kind == yamlv3.AliasNode {
			n = n.Alias
		}
		if n.Kind != yamlv3.MappingNode {
			return nil
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := prefix+n.Content[i].Value, n.Content[i+1]
			if first, twice := lines[key]; twice && value.Kind != yamlv3.MappingNode {
				return fmt.Errorf("%s is set twice, in lines %d and %d", key, first, n.Content[i].Line)
			}
			lines[key] = n.Content[i].Line
			if err := walk(value, key+delimiter); err != nil {
				return err
			}
		}
		return nil
	}
	return lines, walk(document.Content[0], "")
}
