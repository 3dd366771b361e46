package main

import (
	"strings"
	"testing"
)

// Half of the topics, or half of their partitions, must not look like the whole.
func TestReadingRefusesTheWrongTopics(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "webhooks", "create", "--id", "crm", "--url", "https://example.com/").wantCode(t, exitOK)
	for _, command := range [][]string{
		{"webhooks", "list"}, {"webhooks", "get", "crm"}, {"dlq", "list"}, {"dlq", "show", "x"}, {"dlq", "stats"}, {"logs", "crm"}, {"events", "get", "x", "--webhook", "crm"}, {"status"}, {"retry-tiers"},
	} {
		o := s.run(t, append(command, "--topics.prefix=none.")...).wantCode(t, exitFailed).wantErr(t, "none.", "missing", "`reenvio topics apply`")
		if strings.Count(o.errOut, "\n") != 1 || strings.Contains(o.errOut, "UNKNOWN_TOPIC") || o.out != "" {
			t.Errorf("%v: want one line:\n%s%s", command, o.errOut, o.out)
		}
		o = s.run(t, append(command, "--topics.partitions=2")...)
		o.errOut += o.out // status shows what is wrong among the rest
		o.wantErr(t, "has 3 partitions", "topics.partitions is 2", "set it to 3")
	}
	s.run(t, "webhooks", "list", "--kafka.brokers=127.0.0.1:1").wantCode(t, exitFailed).wantErr(t, "127.0.0.1:1", "flag --kafka.brokers", "kafka.tls.*")
}
