package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kcatCannot: kcat takes headers and keys from its command line, and has no option
// for a timestamp.
func kcatCannot(x *example, onApache bool) string {
	codec := x.Config["compression.type"]
	switch {
	case x.End == "abort":
		return "kcat commits when its input ends"
	case !onApache && codec != "" && codec != "none" && codec != "zstd":
		// Its librdkafka may be older than 2.11.1, which does not compress where no
		// Produce of version 0 is advertised. Apache Kafka advertises one for its sake
		// (KAFKA-18659), the embedded broker does not.
		return "an old librdkafka does not compress for the embedded broker"
	}
	for _, e := range x.Records {
		if e.Timestamp != 0 {
			return "kcat has no option for a timestamp"
		}
		for _, h := range e.Headers {
			if bytes.IndexByte(h.Value, 0) >= 0 {
				return "an argument can't hold a byte of 0"
			}
		}
	}
	return ""
}

// kcatProducer runs kcat once for each event.
func kcatProducer(kcat, brokers, dir string) func(context.Context, []*example) ([][]string, error) {
	file := filepath.Join(dir, "value")
	produce := func(ctx context.Context, x *example, e event) (string, error) {
		command := []string{kcat, "-P", "-b", brokers, "-t", e.Topic}
		for name, value := range x.Config {
			command = append(command, "-X", name+"="+value)
		}
		for _, h := range e.Headers {
			arg := h.Name
			if h.Value != nil {
				arg += "=" + string(h.Value)
			}
			command = append(command, "-H", arg)
		}
		if e.Key != nil {
			command = append(command, "-k", string(e.Key))
		}
		var stdin []byte
		if len(e.Value) > 0 {
			// A file is one message, whatever bytes it holds.
			if err := os.WriteFile(file, e.Value, 0o600); err != nil {
				return "", err
			}
			command = append(command, file)
		} else {
			// An empty file is none, and a line that ends behind its key is one.
			command, stdin = append(command, "-K", "|"), append(slices.Clone(e.Key), "|\n"...)
		}
		if e.Value == nil {
			command = append(command, "-Z")
		}
		_, err := run(ctx, stdin, command...)
		if err != nil {
			for words, code := range refusals {
				if strings.Contains(err.Error(), words) {
					return code, nil
				}
			}
		}
		return "", err
	}
	return func(ctx context.Context, examples []*example) ([][]string, error) {
		errors := make([][]string, len(examples))
		for i, x := range examples {
			for _, e := range x.Records {
				code, err := produce(ctx, x, e)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", x.name, err)
				}
				errors[i] = append(errors[i], code)
			}
		}
		return errors, nil
	}
}

// refusals are the words in which kcat tells of one, and librdkafka's name for it.
var refusals = map[string]string{"Delivery failed for message: Broker: Message size too large": "MSG_SIZE_TOO_LARGE"}
