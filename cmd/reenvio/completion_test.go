package main

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// completions are what the shell would offer for the last word.
func (s *shell) completions(t *testing.T, words ...string) []string {
	t.Helper()
	typing := *s
	typing.environ = append(slices.Clone(s.environ), "REENVIO_ACTIVE_HELP=0") // as the script for fish does
	o := typing.run(t, append([]string{"__complete"}, words...)...).wantCode(t, exitOK)
	lines := strings.Split(strings.TrimSpace(o.out), "\n")
	return lines[:len(lines)-1] // the last one tells the shell what else it may offer
}

func TestCompletionOffersWhatCanStandThere(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	for id, description := range map[string]string{"crm-orders": "orders of the CRM", "crm-users": "", "shop": "the shop"} {
		s.run(t, "webhooks", "create", "--id", id, "--url", "https://example.com/", "--description", description).wantCode(t, exitOK)
	}
	orders, users, shop := "crm-orders\torders of the CRM", "crm-users", "shop\tthe shop"
	for _, tt := range []struct{ words, want []string }{
		{[]string{"webhooks", "get", "crm"}, []string{orders, users}},
		{[]string{"webhooks", "pause", ""}, []string{orders, users, shop}},
		{[]string{"webhooks", "get", "shop", ""}, nil},
		{[]string{"send", "--webhook", "s"}, []string{shop}},
		{[]string{"dlq", "list", "--webhook", "s"}, []string{shop}},
		{[]string{"webhooks", "list", "-o", ""}, []string{"table", "json"}},
		{[]string{"webhooks", "create", "--ordering", ""}, []string{"first_attempt", "strict", "key", "strict_key", "none"}},
		{[]string{"webhooks", "update", "shop", "--jitter", ""}, []string{"additive", "full"}},
		{[]string{"dlq", "list", "--reason", ""}, deathReasons()},
		{[]string{"dlq", "show", ""}, nil},
		{[]string{"topics", "pl"}, []string{"plan\tPrint the difference between the topics that are there and what should be"}},
	} {
		if got := s.completions(t, tt.words...); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.words, got, tt.want)
		}
	}
}

// Whoever presses the tab key must neither wait long nor read an error.
func TestCompletionWithoutABrokerOffersNothing(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, environ := range map[string]string{
		"none is configured":         "",
		"none is there":              "REENVIO_KAFKA__BROKERS=127.0.0.1:1",
		"none answers":               "REENVIO_KAFKA__BROKERS=" + silent.Addr().String(),
		"the configuration is wrong": "REENVIO_TOPICS__PARTITIONS=x",
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, environ)
			began := time.Now()
			if got := s.completions(t, "webhooks", "get", ""); len(got) > 0 {
				t.Errorf("got %q", got)
			}
			if took := time.Since(began); took >= patience { // a command's, ten times that of a tab key
				t.Errorf("it took %s", took)
			}
		})
	}
}
