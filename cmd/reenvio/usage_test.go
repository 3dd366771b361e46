package main

import (
	"slices"
	"strings"
	"testing"
)

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		name    string
		args    []string
		environ string
		file    string
		want    []string
	}{
		{name: "unknown setting", args: []string{"config", "--dispatcher.max_perhost=3"}, want: []string{"unknown flag: --dispatcher.max_perhost", `the nearest known key is "--dispatcher.max_per_host"`}},
		{name: "unknown flag", args: []string{"topics", "plan", "--nonsense"}, want: []string{"--nonsense", "reenvio topics plan --help"}},
		{name: "unknown command", args: []string{"topic"}, want: []string{`no command "topic"`, "topics"}},
		{name: "unknown subcommand", args: []string{"webhooks", "pauze", "x"}, want: []string{`reenvio webhooks has no command "pauze"`, "pause"}},
		{name: "help of an unknown command", args: []string{"help", "topic"}, want: []string{`no command "topic"`, "topics"}},
		{name: "help of an unknown subcommand", args: []string{"help", "webhooks", "pauze"}, want: []string{`reenvio webhooks has no command "pauze"`, "pause"}},
		{name: "show by argument and by id", args: []string{"dlq", "show", "e1", "--id", "e1"}, want: []string{"an argument or --id, not both"}},
		{name: "missing argument", args: []string{"webhooks", "get"}, want: []string{"reenvio webhooks get needs a webhook id"}},
		{name: "too many arguments", args: []string{"webhooks", "get", "a", "b"}, want: []string{"takes one argument"}},
		{name: "a wait without a unit", args: []string{"send", "--webhook", "a", "--wait=5"}, want: []string{`"5"`, "a number with a unit, such as 500ms"}},
		{name: "a schedule of anything", args: []string{"webhooks", "create", "--url", "https://x/", "--schedule", "1s,soon"}, want: []string{"1s,soon", "a number with a unit"}},
		{name: "a wait without its equals sign", args: []string{"send", "--webhook", "a", "--wait", "10s"}, want: []string{`got "10s"`, "--wait=10s"}},
		{name: "argument to a command without", args: []string{"version", "1"}, want: []string{`takes no argument, got "1"`}},
		{name: "bad output format", args: []string{"version", "-o", "xml"}, want: []string{"xml", "table or json"}},
		{name: "unknown key in the file", args: []string{"config"}, file: "kafka:\n  broker: x\n", want: []string{"reenvio.yaml:2", `"kafka.broker"`, `"kafka.brokers"`}},
		{name: "unknown key in the environment", args: []string{"config"}, environ: "REENVIO_KAFKA_BROKERS=x", want: []string{"REENVIO_KAFKA_BROKERS", "REENVIO_KAFKA__BROKERS"}},
		{name: "bad duration in the file", args: []string{"config"}, file: "retry:\n  max_delay: 100\n", want: []string{"reenvio.yaml:2", "retry.max_delay", `"100" is no duration`}},
		{name: "bad duration in the environment", args: []string{"config"}, environ: "REENVIO_DEDUP__WINDOW=soon", want: []string{"REENVIO_DEDUP__WINDOW", `"soon" is no duration`}},
		{name: "bad number as a flag", args: []string{"config", "--topics.partitions=x"}, want: []string{"--topics.partitions", `"x" is no whole number`}},
		{name: "out of bounds", args: []string{"config", "--topics.partitions=0"}, want: []string{"topics.partitions is 0"}},
		{name: "a tier that is not canonical", args: []string{"config", "--retry.tiers=60s"}, want: []string{"60s", "1m"}},
		{name: "a whole number as a flag", args: []string{"logs", "crm", "--limit", "x"}, want: []string{`--limit is "x": it must be a whole number`}},
		{name: "a number as a flag", args: []string{"webhooks", "create", "--url", "https://x/", "--rate-limit", "x"}, want: []string{`--rate-limit is "x": it must be a number`}},
		{name: "a truth as a flag", args: []string{"logs", "crm", "--failed=perhaps"}, want: []string{`--failed is "perhaps": it must be true or false`}},
		{name: "two keysets", args: []string{"config", "--secrets.keyset_file=a", "--secrets.keyset=b"}, want: []string{"both secrets.keyset_file and secrets.keyset"}},
		{name: "a broker's port out of bounds", args: []string{"config", "--kafka.brokers=a:99999"}, want: []string{`kafka.brokers has "a:99999"`}},
		{name: "admin port out of bounds", args: []string{"config", "--admin.listen=127.0.0.1:99999"}, want: []string{`admin.listen: "127.0.0.1:99999" is no host:port`}},
		{name: "page on no port", args: []string{"config", "--dlq.listen=127.0.0.1:http"}, want: []string{`dlq.listen: "127.0.0.1:http" is no host:port`}},
		{name: "bad log level", args: []string{"config", "--log.level=loud"}, want: []string{"log.level", "loud"}},
		{name: "a file that is not there", args: []string{"config", "--config=/nowhere.yaml"}, want: []string{"/nowhere.yaml does not exist"}},
		{name: "no broker at all", args: []string{"webhooks", "list"}, want: []string{"make run", "kafka.brokers", "REENVIO_KAFKA__BROKERS"}},
		{name: "keygen without a file", args: []string{"secrets", "keygen"}, want: []string{"-f FILE"}},
		{name: "no URL", args: []string{"webhooks", "create", "--id", "a"}, want: []string{"--url is missing"}},
		{name: "no URL and no id", args: []string{"webhooks", "create"}, want: []string{"--url is missing: where are the events"}},
		{name: "bad URL and no id", args: []string{"webhooks", "create", "--url", "ftp://x"}, want: []string{"the webhook can't be created like this: url must start with https://"}},
		{name: "bad URL", args: []string{"webhooks", "create", "--id", "a", "--url", "ftp://x"}, want: []string{"url must start with https://"}},
		{name: "bad URL where http is allowed", args: []string{"webhooks", "create", "--id", "a", "--url", "notaurl", "--egress.allow_http"}, want: []string{"url must start with https:// or http://"}},
		{name: "no attempts", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/", "--max-attempts", "0"}, want: []string{"--max-attempts is 0: it must be 1 to 50"}},
		{name: "no time", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/", "--timeout", "0s"}, want: []string{"--timeout is 0s: it must be 1s to 2m"}},
		{name: "nothing in flight", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/", "--max-in-flight", "0"}, want: []string{"--max-in-flight is 0"}},
		{name: "update to no attempts", args: []string{"webhooks", "update", "a", "--max-attempts", "0"}, want: []string{"--max-attempts is 0: it must be 1 to 50"}},
		{name: "dev on no port", args: []string{"dev", "--broker-port", "70000"}, want: []string{"--broker-port is 70000", "65535"}},
		{name: "dev's receiver on no port", args: []string{"dev", "--receiver-port", "-1"}, want: []string{"--receiver-port is -1", "65535"}},
		{name: "dev without a directory", args: []string{"dev", "--data-dir", ""}, want: []string{"--data-dir is empty", ".reenvio"}},
		{name: "dev of three brokers", args: []string{"dev", "--topics.replication=3"}, want: []string{"one broker", "topics.replication is 3", "flag --topics.replication"}},
		{name: "an empty webhook id", args: []string{"webhooks", "create", "--id", "", "--url", "https://x/"}, want: []string{"webhook id is empty"}},
		{name: "an empty event id", args: []string{"send", "--webhook", "a", "--id", ""}, want: []string{"event id is empty"}},
		{name: "a host beyond ASCII", args: []string{"webhooks", "create", "--id", "a", "--url", "https://bücher.example/"}, want: []string{"the webhook can't be created like this: url: its host", "xn--"}},
		{name: "half an address", args: []string{"webhooks", "create", "--id", "a", "--url", "https://0x7f.1/"}, want: []string{"url: its host: want an IPv4 address with four numbers"}},
		{name: "URL that is no text", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/\xff"}, want: []string{"url is not valid UTF-8"}},
		{name: "URL without TLS", args: []string{"webhooks", "create", "--id", "a", "--url", "http://x/"}, want: []string{"egress.allow_http"}},
		{name: "bad webhook id", args: []string{"webhooks", "create", "--id", "a/b", "--url", "https://x/"}, want: []string{"webhook id"}},
		{name: "event id with a blank", args: []string{"send", "--webhook", "a", "--id", "x y"}, want: []string{"event id has a byte 0x20"}},
		{name: "event id too long", args: []string{"send", "--webhook", "a", "--id", strings.Repeat("x", 300)}, want: []string{"event id has 300 bytes, the most is 256"}},
		{name: "webhook id with a blank", args: []string{"send", "--webhook", "a b"}, want: []string{"webhook id has a byte 0x20"}},
		{name: "URL with a password", args: []string{"webhooks", "create", "--id", "a", "--url", "https://user:hunter2@x/"}, want: []string{"url has a user or password"}},
		{name: "no URL at all", args: []string{"webhooks", "create", "--id", "a", "--url", "not a url"}, want: []string{"url must start with https://"}},
		{name: "bad timeout", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/", "--timeout", "10"}, want: []string{"--timeout", "10"}},
		{name: "timeout out of bounds", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/", "--timeout", "1h"}, want: []string{"timeout is 1h"}},
		{name: "too many hops", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/", "--max-attempts", "20"}, want: []string{"max_attempts", "retry.tiers"}},
		{name: "bad header", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/", "--header", "secret-token"}, want: []string{"--header number 1"}},
		{name: "bad secret", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/", "--secret", "hunter2"}, want: []string{"--secret", "whsec_"}},
		{name: "no keyset", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/"}, want: []string{"secrets.keyset_file", "reenvio secrets keygen"}},
		{name: "dispatcher from nowhere", args: []string{"dispatcher", "--from", "yesterday"}, want: []string{`--from is "yesterday"`, "RFC 3339"}},
		{name: "dispatcher without a keyset", args: []string{"dispatcher", "--kafka.brokers=127.0.0.1:1"}, want: []string{"secrets.keyset_file", "reenvio secrets keygen"}},
		{name: "dispatcher without a broker", args: []string{"dispatcher", "--secrets.keyset_file=KEYSET"}, want: []string{"kafka.brokers", "REENVIO_KAFKA__BROKERS"}},
		{name: "no wait", args: []string{"webhooks", "pause", "a", "--wait", "0s"}, want: []string{"--wait is 0s"}},
		{name: "no way to be bad", args: []string{"bench", "isolation", "--bad", "slow,rude"}, want: []string{`--bad has no "rude"`, "slow, slower, silent"}},
		{name: "update of nothing", args: []string{"webhooks", "update", "a"}, want: []string{"nothing is to be changed", "--unset"}},
		{name: "update of nobody", args: []string{"webhooks", "update", "--timeout", "5s"}, want: []string{"needs a webhook id"}},
		{name: "update of a bad id", args: []string{"webhooks", "update", "a/b", "--timeout", "5s"}, want: []string{"webhook id"}},
		{name: "unset without a default", args: []string{"webhooks", "update", "a", "--unset", "url"}, want: []string{`"url" is no field with a default`, "timeout"}},
		{name: "update to no secret", args: []string{"webhooks", "update", "a", "--secret", ""}, want: []string{"--secret is empty", "rotate-secret"}},
		{name: "update to a bad secret", args: []string{"webhooks", "update", "a", "--secret", "hunter2"}, want: []string{"--secret", "whsec_"}},
		{name: "update with a bad header", args: []string{"webhooks", "update", "a", "--header", "secret-token"}, want: []string{"--header number 1"}},
		{name: "header without a value", args: []string{"webhooks", "create", "--id", "a", "--url", "https://x/", "--header", "X-A:"}, want: []string{"--header number 1 has no value"}},
		{name: "update to no key", args: []string{"webhooks", "update", "a", "--tls-key", "-"}, want: []string{"--tls-key: nothing is in -", "--unset"}},
		{name: "overlap without a unit", args: []string{"webhooks", "rotate-secret", "a", "--overlap", "30"}, want: []string{"--overlap", "a number with a unit, such as 500ms, 90s, 24h or 7d"}},
		{name: "overlap before now", args: []string{"webhooks", "rotate-secret", "a", "--overlap", "-1h"}, want: []string{"--overlap is -1h"}},
		{name: "rotation to a bad secret", args: []string{"webhooks", "rotate-secret", "a", "--secret", "hunter2"}, want: []string{"--secret", "whsec_"}},
		{name: "rotation without a keyset", args: []string{"webhooks", "rotate-secret", "a"}, want: []string{"secrets.keyset_file", "use the keyset that the dispatchers have"}},
		{name: "delete of a bad id", args: []string{"webhooks", "delete", "a/b"}, want: []string{"webhook id"}},
		{name: "test without waiting", args: []string{"webhooks", "test", "a", "--wait", "-1s"}, want: []string{"--wait is -1s"}},
		{name: "discard since ever", args: []string{"webhooks", "discard-parked", "a"}, want: []string{"--before is missing", "RFC 3339", "2h"}},
		{name: "discard before sometime", args: []string{"webhooks", "discard-parked", "a", "--before", "yesterday"}, want: []string{`--before is "yesterday"`, "RFC 3339"}},
		{name: "discard before the future", args: []string{"webhooks", "discard-parked", "a", "--before", "-2h"}, want: []string{"--before is -2h", "that long ago"}},
		{name: "hold of nothing", args: []string{"hold"}, want: []string{"exactly one of --all, --tenant, --webhook and --host"}},
		{name: "hold of too much", args: []string{"hold", "--all", "--tenant", "acme"}, want: []string{"exactly one"}},
		{name: "hold of no tenant", args: []string{"hold", "--tenant", ""}, want: []string{"--tenant", "needs a value"}},
		{name: "hold of no text", args: []string{"hold", "--tenant", "\xff"}, want: []string{"--tenant: the tenant is not valid UTF-8"}},
		{name: "hold of a bad webhook", args: []string{"hold", "--webhook", "a/b"}, want: []string{"--webhook", "webhook id"}},
		{name: "hold of a URL", args: []string{"hold", "--host", "HTTPS://127.0.0.1:8099/foo"}, want: []string{"give the host only: 127.0.0.1:8099"}},
		{name: "hold of a scheme", args: []string{"hold", "--host", "https://"}, want: []string{"give the host only: hooks.example.com"}},
		{name: "release of a path", args: []string{"release", "--host", "a.example/foo"}, want: []string{"give the host only: a.example\n"}},
		{name: "release of nothing", args: []string{"release"}, want: []string{"exactly one"}},
		{name: "release without waiting", args: []string{"release", "--all", "--wait", "0s"}, want: []string{"--wait is 0s"}},
		{name: "skip to nowhere", args: []string{"skip", "webhooks.events/1/2"}, want: []string{"--to-dlq", "dead letter"}},
		{name: "skip of no place", args: []string{"skip", "order-1", "--to-dlq"}, want: []string{`"order-1"`, "topic/partition/offset"}},
		{name: "bad reason", args: []string{"dlq", "list", "--reason", "bad"}, want: []string{`"bad"`, "attempts_exhausted"}},
		{name: "bad limit", args: []string{"dlq", "list", "--limit", "0"}, want: []string{"--limit is 0"}},
		{name: "dlq show without anything", args: []string{"dlq", "show"}, want: []string{"event id or PARTITION/OFFSET"}},
		{name: "dlq show with too much", args: []string{"dlq", "show", "1/2", "--webhook", "a"}, want: []string{"1/2 names one letter"}},
		{name: "dlq show of two ids", args: []string{"dlq", "show", "--id", "a", "--id", "b"}, want: []string{"--id once"}},
		{name: "dlq stats of a bad time", args: []string{"dlq", "stats", "--since", "yesterday"}, want: []string{"--since", "24h"}},
		{name: "dlq list of no time at all", args: []string{"dlq", "list", "--since", "1h", "--until", "2h"}, want: []string{"nothing lies between"}},
		{name: "redrive without a filter", args: []string{"dlq", "redrive", "--yes"}, want: []string{"needs a filter", "--id, --webhook, --reason, --since or --until"}},
		{name: "redrive with a bad reason", args: []string{"dlq", "redrive", "--reason", "bad"}, want: []string{`"bad"`, "attempts_exhausted"}},
		{name: "redrive with a bad webhook", args: []string{"dlq", "redrive", "--webhook", "a/b"}, want: []string{"webhook id"}},
		{name: "redrive with a bad run", args: []string{"dlq", "redrive", "--id", "a", "--run", "a/b", "--yes"}, want: []string{`"a/b" can't name a redrive`}},
		{name: "redrive with nobody to ask", args: []string{"dlq", "redrive", "--id", "a"}, want: []string{"pass --yes"}},
		{name: "redrive with an argument", args: []string{"dlq", "redrive", "evt-1"}, want: []string{"takes no argument"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newShell(t, tt.environ)
			if tt.file != "" {
				tt.args = append(tt.args, "--config", writeFile(t, "reenvio.yaml", tt.file))
			}
			for i := range tt.args {
				if name, ok := strings.CutSuffix(tt.args[i], "=KEYSET"); ok {
					s.run(t, "secrets", "keygen", "-f", "k.json").wantCode(t, exitOK)
					tt.args[i] = name + "=k.json"
				}
			}
			o := s.run(t, tt.args...).wantCode(t, exitUsage).wantErr(t, tt.want...)
			if o.out != "" {
				t.Errorf("an error has no business on stdout: %s", o.out)
			}
			lines := strings.Split(o.errOut, "\n")
			for i, line := range lines {
				if line != "" && slices.Contains(lines[:i], line) {
					t.Errorf("said twice: %s", line)
				}
			}
			for _, word := range []string{" wh_", "validating endpoint", "making event record", "time: "} { // an id that nobody gave, and insiders' words
				if strings.Contains(o.errOut, word) {
					t.Errorf("stderr has %q: %s", word, o.errOut)
				}
			}
			for _, secret := range []string{"hunter2", "secret-token"} {
				if strings.Contains(o.errOut, secret) {
					t.Errorf("stderr shows a secret: %s", o.errOut)
				}
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	s := newShell(t)
	s.run(t).wantCode(t, exitOK).wantOut(t, "reenvio dev", "topics", "webhooks")
	s.run(t, "help", "webhooks", "create").wantCode(t, exitOK).wantOut(t, "--max-attempts", "Examples:")
	s.run(t, "help").wantCode(t, exitOK).wantOut(t, "reenvio dev", "topics", "help ")
	s.run(t, "__complete", "help", "webhooks", "re").wantCode(t, exitOK).wantOut(t, "resume")
	s.run(t, "webhooks").wantCode(t, exitOK).wantOut(t, "pause", "resume")
	s.run(t, "webhooks", "create", "--help").wantCode(t, exitOK).wantOut(t, "--max-attempts", "Examples:")
}

func TestEveryCommandHasAnExample(t *testing.T) {
	root := newRoot(&cli{})
	for _, cmd := range root.Commands() {
		subs := cmd.Commands()
		if !cmd.HasSubCommands() {
			subs = append(subs, cmd)
		}
		for _, sub := range subs {
			if sub.Short == "" || (!sub.Hidden && sub.Example == "") {
				t.Errorf("%s has no help or no example", sub.CommandPath())
			}
		}
	}
}
