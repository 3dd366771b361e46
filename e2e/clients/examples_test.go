package clients_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// example is what one client does, and what has to become of it. Each has a
// webhook of its own, whose id is the key of its events unless it says otherwise.
type example struct {
	name    string
	webhook string
	session

	fails int // so many attempts of each event
	most  int // attempts, 0: the default
	// ends is how all its events end: delivered, when it is empty.
	ends    ending
	because string // with a refusal its code; with a death a part of what the dead letter says
	// moves says that its events are in the wrong partition at first: always or
	// never. Without it, either may be.
	moves string
}

type ending string

const (
	delivered ending = ""
	refused   ending = "refused" // by the broker: it never was
	aborted   ending = "aborted" // it lies in the topic, and nobody may see it
)

func died(reason record.DeathReason) ending { return ending(reason) }

// settings differ between clients where nothing else does.
type settings struct {
	size        string // of the largest message that the client lets through
	partitioner string // the value that means murmur2, where it is not the default
}

var (
	librdkafka = settings{size: "message.max.bytes", partitioner: "murmur2_random"}
	javaClient = settings{size: "max.request.size"}
)

// examples are what a client is tried with.
func examples(client string, s settings, topo *topology.Topology, onApache bool) []*example {
	var all []*example
	// add makes an example of one event; change makes of it what it is about.
	add := func(name string, change func(x *example, e *event)) {
		x := &example{name: name, webhook: client + "-" + strings.ReplaceAll(name, " ", "-")}
		x.Config = map[string]string{s.size: "4000000"}
		e := event{Topic: topo.Events(), Key: []byte(x.webhook), Value: []byte(`{"order": 4711}` + "\n"), Headers: cloudEvent("evt-" + x.webhook)}
		change(x, &e)
		if x.Records == nil {
			x.Records = []event{e}
		}
		all = append(all, x)
	}
	with := func(headers ...header) func(*example, *event) {
		return func(_ *example, e *event) { e.Headers = append(e.Headers, headers...) }
	}

	add("plain", with())
	add("no headers", func(_ *example, e *event) { e.Headers = nil })
	add("no id", func(x *example, e *event) {
		// Nine, in one producer's order, each with an id of its own at the end.
		e.Headers = []header{text("ce_type", "order.paid"), text("content-type", "text/plain; charset=utf-8")}
		for n := range 9 {
			next := *e
			next.Value = fmt.Appendf(nil, "%d", n)
			x.Records = append(x.Records, next)
		}
	})
	add("structured", func(x *example, e *event) {
		e.Headers = []header{text("content-type", "application/cloudevents+json; charset=UTF-8")}
		e.Value = []byte("{ \"specversion\":\"1.0\",\t\"id\":\"evt-in-the-envelope\", \"type\":\"order.paid\", \"source\":\"/orders\", \"data\":{\"n\": 1.0} }")
		x.fails = 1
	})
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		add("compressed with "+codec, func(x *example, e *event) {
			x.Config["compression.type"] = codec
			e.Value = bytes.Repeat([]byte("not so much to say "), 2000)
			x.fails = 1
		})
	}

	add("empty header", with(header{"x-empty", []byte{}}))
	add("null header", func(x *example, e *event) {
		e.Headers = append(e.Headers, header{"x-null", nil}, header{"x-empty", []byte{}})
		x.fails, x.most, x.ends, x.because = 2, 2, died(record.AttemptsExhausted), "500"
	})
	add("binary header", func(x *example, e *event) {
		e.Headers = append(e.Headers, header{"x-binary", []byte("\x00\x01\xfe\xff\r\n\x80")})
		x.fails, x.most, x.ends, x.because = 2, 2, died(record.AttemptsExhausted), "500"
	})
	add("header that is no text", func(x *example, e *event) {
		e.Headers = append(e.Headers, header{"x-binary", []byte("\x01\xfe\xff\r\n\x80")})
		x.fails = 1
	})
	add("header names", func(x *example, e *event) {
		e.Headers = append(e.Headers, text("x naïve \t name", "1"), text("X-UPPER", "2"), text("x-upper", "3"))
		x.fails = 1
	})
	add("header twice", func(x *example, e *event) {
		e.Headers = append(e.Headers, text("x-twice", "b"), text("x-twice", "a"), text("x-twice", "b"), text("ce_type", "order.refunded"))
		x.fails = 1
	})
	add("long header", func(x *example, e *event) {
		e.Headers = append(e.Headers, text("x-long", strings.Repeat("long ", 20_000)))
		x.fails = 1
	})
	add("headers of ours", func(x *example, e *event) {
		// Nobody forges attempts, a due time, a death or a source.
		e.Headers = append(e.Headers, text("webhook-attempt", "4"), text("x-own", "stays"), text("webhook-due-at", "2099-01-01T00:00:00.000Z"),
			text("webhook-source", topo.Events()+"/0/0"), text("webhook-dlq-reason", "expired"), text("webhook-of-tomorrow", "?"),
			text("__dlq.errors.topic", "t"), text("webhook-reason", "paused"), text("webhook-moved", "no place"), text("webhook-redrive", "no run"))
		x.fails = 1
	})
	add("header injection", func(_ *example, e *event) {
		e.Headers = []header{text("ce_id", "evt-injection"), text("ce_type", "a\r\nX-Evil: 1"), text("content-type", "text/plain\r\nX-Evil: 1"), text("traceparent", "00-\r\nX-Evil: 1")}
	})

	add("timestamp of 1970", func(x *example, e *event) { e.Timestamp, x.fails = 1000, 1 })
	add("timestamp of 2100", func(x *example, e *event) {
		e.Timestamp, x.fails = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), 1
		if onApache { // message.timestamp.after.max.ms is an hour; brokers before 4.0 took it
			x.fails, x.ends, x.because = 0, refused, "INVALID_TIMESTAMP"
		}
	})

	add("null value", func(x *example, e *event) { e.Value, x.fails = nil, 1 })
	add("null value that dies", func(x *example, e *event) {
		e.Value = nil
		x.fails, x.most, x.ends, x.because = 2, 2, died(record.AttemptsExhausted), "500"
	})
	add("empty value", func(x *example, e *event) {
		e.Value = []byte{}
		x.fails, x.most, x.ends, x.because = 2, 2, died(record.AttemptsExhausted), "500"
	})
	add("value of all bytes", func(x *example, e *event) {
		e.Value = nil
		for b := range 256 {
			e.Value = append(e.Value, byte(b))
		}
		x.fails = 1
	})

	for name, key := range map[string][]byte{"null key": nil, "empty key": {}, "illegal key": []byte("no/" + client), "long key": []byte(strings.Repeat("k", 257))} {
		because := map[string]string{"null key": "has no key", "empty key": "is empty", "illegal key": "has a byte 0x2f", "long key": "has 257 bytes"}
		add(name, func(x *example, e *event) {
			x.ends, x.because = died(record.InvalidRecord), because[name]
			e.Key = key
		})
	}
	add("longest key", func(x *example, e *event) {
		x.webhook += strings.Repeat("k", 256-len(x.webhook))
		e.Key, x.fails = []byte(x.webhook), 1
	})
	add("illegal id", func(x *example, e *event) {
		e.Headers = cloudEvent("an id")
		x.ends, x.because = died(record.InvalidRecord), "event id has a byte 0x20"
	})

	add("largest record", func(x *example, e *event) {
		*e = e.fill(record.MaxEventBytes)
		x.Config["compression.type"], x.fails = "none", 1
		if s.partitioner != "" {
			x.Config["partitioner"] = s.partitioner
		}
	})
	add("too large a record", func(x *example, e *event) {
		*e = e.fill(record.MaxEventBytes + 1)
		x.Config["compression.type"], x.ends, x.because = "none", refused, "MESSAGE_TOO_LARGE"
		if s == librdkafka {
			x.because = "MSG_SIZE_TOO_LARGE"
		}
	})
	add("large but compressed well", func(x *example, e *event) {
		e.Value = bytes.Repeat([]byte("again and "), 250_000)
		x.Config["compression.type"], x.fails = "gzip", 1
	})

	add("idempotent", func(x *example, _ *event) { x.Config["enable.idempotence"] = "true" })
	add("acks of the leader alone", func(x *example, _ *event) { x.Config["enable.idempotence"], x.Config["acks"] = "false", "1" })
	add("transaction committed", func(x *example, _ *event) {
		x.End, x.fails = "commit", 1
		x.Config["transactional.id"] = topo.Prefix() + x.webhook
	})
	add("transaction aborted", func(x *example, _ *event) {
		x.End, x.ends = "abort", aborted
		x.Config["transactional.id"] = topo.Prefix() + x.webhook
	})

	if s.partitioner == "" {
		for _, x := range all {
			x.moves = "never"
		}
		return all
	}
	add("partitioner of Java", func(x *example, _ *event) {
		x.Config["partitioner"], x.moves = s.partitioner, "never"
	})
	// librdkafka's own partitioner is CRC-32 of the key.
	misplace := func(x *example, e *event) {
		for n := 0; crc32.ChecksumIEEE(e.Key)%uint32(topo.Partitions()) == uint32(topo.PartitionFor(x.webhook)); n++ {
			x.webhook = fmt.Sprintf("%s-%s-%d", client, strings.ReplaceAll(x.name, " ", "-"), n)
			e.Key, e.Headers = []byte(x.webhook), cloudEvent("evt-"+x.webhook)
		}
	}
	add("wrong partition", func(x *example, e *event) {
		misplace(x, e)
		x.fails, x.moves = 1, "always"
	})
	add("wrong partition without id", func(x *example, e *event) {
		misplace(x, e)
		e.Headers, x.fails, x.moves = nil, 1, "always"
	})
	add("largest record in the wrong partition", func(x *example, e *event) {
		misplace(x, e)
		*e = e.fill(record.MaxEventBytes)
		// The header that says where it was has no room any more.
		x.Config["compression.type"], x.ends, x.because = "none", died(record.TooLarge), "wrong partition"
	})
	return all
}
