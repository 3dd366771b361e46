package kafkatest

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

const apacheBrokers = 3

// newNodes writes the configuration of all brokers. Nothing is started.
func newNodes(dir, java, jars string, cfg apacheConfig) ([]*node, error) {
	ports, err := freePorts((2 + 2*len(cfg.paths)) * cfg.brokers)
	if err != nil {
		return nil, err
	}
	take := func() int {
		port := ports[0]
		ports = ports[1:]
		return port
	}
	id := clusterID()
	var nodes []*node
	var voters []string
	for i := range cfg.brokers {
		home := filepath.Join(dir, fmt.Sprint(i))
		n := &node{
			id: i, broker: take(), controller: take(), clusterID: id, features: cfg.features,
			java: java, classpath: filepath.Join(jars, "*"), dir: home, data: filepath.Join(home, "data"), log: filepath.Join(home, "broker.log"),
		}
		if len(cfg.disks) > 0 {
			n.data = filepath.Join(cfg.disks[i], "data")
		}
		for _, name := range cfg.paths {
			n.paths = append(n.paths, path{name, Hop{Advertised: local(take()), Broker: local(take())}})
		}
		nodes = append(nodes, n)
		voters = append(voters, fmt.Sprintf("%d@%s", i, local(n.controller)))
	}
	for _, n := range nodes {
		if err := os.Mkdir(n.dir, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(n.config(), []byte(n.properties(voters)), 0o644); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(n.dir, "log4j2.properties"), []byte(log4j), 0o644); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// properties is Kafka's configuration. What differs from a default of Kafka is
// said why.
func (n *node) properties(voters []string) string {
	listeners := []string{"PLAINTEXT://" + n.addr(), "CONTROLLER://" + local(n.controller)}
	advertised := []string{"PLAINTEXT://" + n.addr()}
	protocols := []string{"PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"}
	for _, p := range n.paths {
		name := "PATH_" + strings.ToUpper(p.name)
		listeners = append(listeners, name+"://"+p.Broker)
		advertised = append(advertised, name+"://"+p.Advertised)
		protocols = append(protocols, name+":PLAINTEXT")
	}
	list := func(all []string) string { return strings.Join(all, ",") }
	return fmt.Sprintf(`process.roles=broker,controller
node.id=%d
controller.quorum.voters=%s
listeners=%s
advertised.listeners=%s
controller.listener.names=CONTROLLER
listener.security.protocol.map=%s
inter.broker.listener.name=PLAINTEXT
log.dirs=%s
# As a careful operator has it.
default.replication.factor=%[7]d
min.insync.replicas=%[8]d
offsets.topic.replication.factor=%[7]d
transaction.state.log.replication.factor=%[7]d
transaction.state.log.min.isr=%[8]d
share.coordinator.state.topic.replication.factor=%[7]d
share.coordinator.state.topic.min.isr=%[8]d
auto.create.topics.enable=false
# A test's first member need not wait 3 s for a second.
group.initial.rebalance.delay.ms=0
# By default a dead transaction can hold readers for its timeout and 10 s more.
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
# By default 50 each, which three small brokers would open at their first use.
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
share.coordinator.state.topic.num.partitions=1
# Tests run on few cores; the defaults are for brokers that have a machine.
num.network.threads=2
num.io.threads=4
num.replica.fetchers=1
log.cleaner.dedupe.buffer.size=8388608
`, n.id, list(voters), list(listeners), list(advertised), list(protocols), n.data, len(voters), min(2, len(voters)))
}

const log4j = `rootLogger.level = WARN
rootLogger.appenderRef.out.ref = OUT
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %-5p %m (%c{1})%n%xEx
`

// clusterID is a UUID as Kafka writes it. One that begins with a dash would look
// like an option of the format command.
func clusterID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// FreeAddress is one on 127.0.0.1 that nobody listens at, for a process that must be
// told where to.
func FreeAddress(t testing.TB) string {
	t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return local(ports[0])
}

var portsTaken atomic.Uint32

// freePorts finds ports on 127.0.0.1 that nobody listens to. They lie below the
// range from which Linux serves port 0 and outgoing connections (32768 on), so
// that the port of a broker that was killed is still free when it comes back. Each
// process takes them from a range of its own: a broker is slow to listen, and the tests
// of several packages start theirs at once.
func freePorts(count int) ([]int, error) {
	const span, ranges = 200, 60
	var ports []int
	for range span {
		port := 20000 + os.Getpid()%ranges*span + int(portsTaken.Add(1)%span)
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		// Held until all are found: no port comes twice.
		defer ln.Close()
		if ports = append(ports, port); len(ports) == count {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found only %d free ports of %d on 127.0.0.1", len(ports), count)
}
