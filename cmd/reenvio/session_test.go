package main

import "testing"

// Half of the topics, or half of their partitions, must not look like the whole.
func TestReadingRefusesTheWrongTopics(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "webhooks", "create", "--id", "crm", "--url", "https://example.com/").wantCode(t, exitOK)
	for _, command := range [][]string{{"webhooks", "list"}, {"webhooks", "get", "crm"}, {"dlq", "list"}, {"dlq", "show", "x"}, {"dlq", "stats"}} {
		s.run(t, append(command, "--topics.prefix=none.")...).wantCode(t, exitFailed).wantErr(t, "the topic none.", "is missing", "topics.prefix", "reenvio topics apply")
		s.run(t, append(command, "--topics.partitions=2")...).wantCode(t, exitFailed).wantErr(t, "has 3 partitions", "topics.partitions is 2", "set it to 3")
	}
	s.run(t, "webhooks", "list", "--kafka.brokers=127.0.0.1:1").wantCode(t, exitFailed).wantErr(t, "127.0.0.1:1", "flag --kafka.brokers", "kafka.tls.*")
}
