package kafkatest

import (
	"strings"
	"testing"
)

// TestMissingToolsAreNamed: who has no Java or Maven is told so, and how to get
// them.
func TestMissingToolsAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, noJava := findJava()
	_, noMaven := kafkaJars(t.Context())
	for tool, err := range map[string]error{"java": noJava, "mvn": noMaven} {
		if err == nil || !strings.Contains(err.Error(), "the command "+tool+" is missing") || !strings.Contains(err.Error(), "apt-get install") {
			t.Errorf("without %s: %v", tool, err)
		}
	}
}

func TestOldJavaIsRefused(t *testing.T) {
	for out, want := range map[string]string{
		"openjdk version \"17\" 2021-09-14": "",
		"openjdk version \"21.0.1\"":        "",
		"openjdk version \"11.0.2\"":        "it is Java 11",
		"java version \"1.8.0_292\"":        "it is Java 1",
		"Error: could not open libjvm.so":   "names no version",
	} {
		if err := newEnough([]byte(out)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", out, err, want)
		}
	}
}

func TestOnlyBrokersOfThisMachine(t *testing.T) {
	for addr, fine := range map[string]bool{
		"127.0.0.1:9092": true, "127.8.0.1:9092": true, "[::1]:9092": true, "localhost:9092": true,
		"10.0.0.1:9092": false, "kafka.example.com:9092": false, "0.0.0.0:9092": false, "localhost.example.com:9092": false, "127.0.0.1": false,
	} {
		if err := loopback(addr); (err == nil) != fine {
			t.Errorf("%s: %v, want fine %v", addr, err, fine)
		}
	}
	if _, err := namedCluster(t.Context(), "127.0.0.1:9092, 192.0.2.1:9092"); err == nil {
		t.Error("a list with a broker elsewhere was taken")
	}
}

func TestNamedBrokers(t *testing.T) {
	fake := Fake(t)
	c, err := namedCluster(t.Context(), fake.Brokers[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Brokers) != 3 || c.control != nil {
		t.Fatalf("got %v, want the three brokers of the cluster, which are not ours to stop", c.Brokers)
	}
}

func TestPrefixIsALegalTopicName(t *testing.T) {
	t.Run("odd/Näme with=many "+strings.Repeat("x", 200), func(t *testing.T) {
		a, b := Prefix(t), Prefix(t)
		if a == b {
			t.Error("two prefixes are the same")
		}
		for _, r := range a {
			if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", r) {
				t.Fatalf("%q in %q", r, a)
			}
		}
		if len(a) > 100 {
			t.Errorf("%d bytes", len(a))
		}
	})
}
