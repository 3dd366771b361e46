package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// startTimeout is for three brokers on a machine that does other things too;
// alone they take about 8 s.
const startTimeout = 2 * time.Minute

// ApacheOption changes a cluster of Apache Kafka from its defaults.
type ApacheOption func(*apacheConfig)

type apacheConfig struct {
	features, paths, disks []string
	brokers                int
}

// Feature formats the cluster with a finalized feature level of its own, such
// as transaction.version 1.
func Feature(name string, level int) ApacheOption {
	return func(c *apacheConfig) { c.features = append(c.features, fmt.Sprintf("%s=%d", name, level)) }
}

// Brokers makes it a cluster of that many, of three without it. One broker takes a third of the memory.
func Brokers(n int) ApacheOption {
	return func(c *apacheConfig) { c.brokers = n }
}

// Disks puts each broker's data on a disk of its own: as many directories as there are
// brokers, which may be small.
func Disks(dirs ...string) ApacheOption {
	return func(c *apacheConfig) { c.disks = dirs }
}

// Path gives the brokers one more way in, of that name: who begins there is told
// addresses at which the brokers themselves do not listen, but somebody else may, a
// proxy that hurts what it forwards. Cluster.Paths has both ends of it.
func Path(name string) ApacheOption {
	return func(c *apacheConfig) { c.paths = append(c.paths, name) }
}

// Hop is how one broker is reached on a path.
type Hop struct {
	Advertised string // what clients of the path are told; a proxy has to listen there
	Broker     string // where the broker itself listens
}

// Apache is a cluster of three Apache Kafka brokers, or as many as Brokers says, in KRaft mode. Without
// options it is shared by all tests of the process, which tell their topics and
// groups apart by Prefix; with options it is the caller's own and stops with the
// test. The package's TestMain must call Main.
//
// REENVIO_TEST_BROKERS (host:port, comma separated, on this machine only) names
// a cluster that runs already, in place of the shared one.
func Apache(t testing.TB, opts ...ApacheOption) *Cluster {
	t.Helper()
	if !inMain {
		t.Fatal("kafkatest.Apache needs the package's TestMain to be: func TestMain(m *testing.M) { kafkatest.Main(m) }")
	}
	if len(opts) > 0 {
		cfg := apacheConfig{brokers: apacheBrokers}
		for _, o := range opts {
			o(&cfg)
		}
		a, err := startApache(t.Context(), cfg)
		if err != nil {
			t.Fatalf("starting Apache Kafka: %v", err)
		}
		t.Cleanup(a.stop)
		return a.cluster(t)
	}
	if named := os.Getenv(brokersVariable); named != "" {
		c, err := namedCluster(t.Context(), named)
		if err != nil {
			t.Fatalf("using the brokers of %s: %v", brokersVariable, err)
		}
		return c
	}
	a, err := shared()
	if err != nil {
		t.Fatalf("starting Apache Kafka: %v", err)
	}
	return a.cluster(t)
}

// inMain says that Main is running, and so will stop what is started.
var inMain bool

// shared starts the process's one cluster, once: a second try after a failure
// would only fail again, slowly, for every test.
var shared = sync.OnceValues(func() (*apache, error) {
	a, err := startApache(context.Background(), apacheConfig{brokers: apacheBrokers})
	running = a
	return a, err
})

var running *apache

// Main runs the tests of a package that uses Apache, stops the shared cluster
// and exits.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main without the exit, for a TestMain that has more to do.
func Run(m *testing.M) int {
	inMain = true
	code := m.Run()
	if running != nil {
		running.stop()
	}
	return code
}

// apache is a running cluster.
type apache struct {
	dir   string // of everything: configuration, data, logs
	nodes []*node
}

func startApache(ctx context.Context, cfg apacheConfig) (_ *apache, err error) {
	java, jars, err := Java(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "reenvio-kafka-")
	if err != nil {
		return nil, err
	}
	a := &apache{dir: dir}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w%s", err, a.logs())
			a.stop()
		}
	}()
	if a.nodes, err = newNodes(dir, java, jars, cfg); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := a.each(func(n *node) error { return n.format(ctx) }); err != nil {
		return nil, err
	}
	if err := a.each(func(n *node) error { return n.start() }); err != nil {
		return nil, err
	}
	if err := a.awaitHealthy(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// each does the same to all nodes at once.
func (a *apache) each(do func(*node) error) error {
	errs := make([]error, len(a.nodes))
	var wg sync.WaitGroup
	for i, n := range a.nodes {
		wg.Go(func() { errs[i] = do(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// stop ends the brokers without ceremony, since nobody will need their data,
// and takes it away.
func (a *apache) stop() {
	_ = a.each((*node).kill)
	_ = os.RemoveAll(a.dir)
}

func (a *apache) cluster(t testing.TB) *Cluster {
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the brokers' last lines:" + a.logs())
		}
	})
	c := &Cluster{control: a, Paths: map[string][]Hop{}}
	for _, n := range a.nodes {
		c.Brokers = append(c.Brokers, n.addr())
		for _, p := range n.paths {
			c.Paths[p.name] = append(c.Paths[p.name], p.Hop)
		}
	}
	return c
}

func (a *apache) kill(i int) error { return a.nodes[i].kill() }

func (a *apache) awaitEnd(ctx context.Context, i int) error { return a.nodes[i].awaitEnd(ctx) }

func (a *apache) terminate(ctx context.Context, i int) error { return a.nodes[i].terminate(ctx) }

func (a *apache) start(ctx context.Context, which ...int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, i := range which {
		if err := a.nodes[i].start(); err != nil {
			return err
		}
	}
	return a.awaitHealthy(ctx)
}

func (a *apache) logs() string {
	var out strings.Builder
	for _, n := range a.nodes {
		fmt.Fprintf(&out, "\n--- broker %d (%s)\n%s", n.id, n.log, n.lastLines())
	}
	return out.String()
}
