package kafkatest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A broker listens on a path of its own, and tells who comes on it to go on there,
// where a proxy is to listen; other brokers and clients are told nothing of it.
func TestPathIsAdvertised(t *testing.T) {
	nodes, err := newNodes(t.TempDir(), "java", "jars", apacheConfig{brokers: apacheBrokers, paths: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]bool{}
	for _, n := range nodes {
		data, err := os.ReadFile(n.config())
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(data), "\n")
		a, b := n.paths[0], n.paths[1]
		for _, want := range []string{
			"listeners=PLAINTEXT://" + n.addr() + ",CONTROLLER://" + local(n.controller) + ",PATH_A://" + a.Broker + ",PATH_B://" + b.Broker,
			"advertised.listeners=PLAINTEXT://" + n.addr() + ",PATH_A://" + a.Advertised + ",PATH_B://" + b.Advertised,
			"inter.broker.listener.name=PLAINTEXT",
		} {
			if !slices.Contains(lines, want) {
				t.Errorf("the configuration of broker %d lacks %s:\n%s", n.id, want, data)
			}
		}
		for _, at := range []string{n.addr(), local(n.controller), a.Broker, a.Advertised, b.Broker, b.Advertised} {
			if ports[at] {
				t.Errorf("%s is there twice", at)
			}
			ports[at] = true
		}
	}
}
