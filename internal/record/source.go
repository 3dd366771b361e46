package record

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Source is the place of a record in Kafka. Its text, in headers and in JSON,
// is "topic/partition/offset".
type Source struct {
	Topic     string
	Partition int32
	Offset    int64
}

// SourceOf is the place that r was fetched from.
func SourceOf(r *kgo.Record) Source {
	return Source{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
}

// maxTopicName is Kafka's own limit for the name of a topic, in bytes.
const maxTopicName = 249

// ParseSource reads the text that String writes, and nothing else: no sign, no
// leading zeros, a legal topic name, so that a place has one spelling (derived
// event ids are hashes of it).
func ParseSource(s string) (Source, error) {
	topic, rest, _ := strings.Cut(s, "/")
	partition, offset, ok := strings.Cut(rest, "/")
	if !ok {
		return Source{}, fmt.Errorf("reading place %q: want topic/partition/offset", cut(s, 64))
	}
	p, perr := strconv.ParseInt(partition, 10, 32)
	o, oerr := strconv.ParseInt(offset, 10, 64)
	src := Source{Topic: topic, Partition: int32(p), Offset: o}
	if perr != nil || oerr != nil || p < 0 || o < 0 || !legalTopic(topic) || src.String() != s {
		return Source{}, fmt.Errorf("reading place %q: want topic/partition/offset", cut(s, 64))
	}
	return src, nil
}

func (s Source) String() string {
	return s.Topic + "/" + strconv.FormatInt(int64(s.Partition), 10) + "/" + strconv.FormatInt(s.Offset, 10)
}

// MarshalText writes the source as String does.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Source) UnmarshalText(text []byte) error {
	src, err := ParseSource(string(text))
	if err != nil {
		return err
	}
	*s = src
	return nil
}

func legalTopic(name string) bool {
	if name == "" || len(name) > maxTopicName {
		return false
	}
	for i := range len(name) {
		if !alphanumeric(name[i]) && !strings.ContainsRune("._-", rune(name[i])) {
			return false
		}
	}
	return true
}
