package kafkatest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// kafkaVersion is the Apache Kafka that tests run on; REENVIO_TEST_KAFKA_VERSION
// names another (3.9.1 has been tried).
var kafkaVersion = cmp.Or(os.Getenv("REENVIO_TEST_KAFKA_VERSION"), "4.4.0")

// pom names Apache Kafka's server, its tools (for formatting) and a logger.
// Maven resolves the rest: about 90 jars, 54 MB.
var pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.github.reenvio</groupId>
  <artifactId>test-brokers</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>` + kafkaVersion + `</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>` + kafkaVersion + `</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.1</version></dependency>
  </dependencies>
</project>
`

// howToGet is the hint in every error about a missing tool.
const howToGet = "tests on Apache Kafka need Java 17 or newer and Maven: apt-get install openjdk-17-jre-headless maven"

// Java is the java to run Apache Kafka's own programs with, and the directory with
// all their jars: its clients are among them.
func Java(ctx context.Context) (java, jars string, err error) {
	if java, err = findJava(); err != nil {
		return "", "", err
	}
	jars, err = kafkaJars(ctx)
	return java, jars, err
}

// kafkaJars is a directory with all jars, filled by Maven the first time and
// kept in the user's cache.
func kafkaJars(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a place for Apache Kafka's jars: %w", err)
	}
	cache = filepath.Join(cache, "reenvio")
	jars := filepath.Join(cache, "kafka-"+kafkaVersion)
	if _, err := os.Stat(jars); err == nil {
		return jars, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("the command mvn is missing; %s", howToGet)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("making a place for Apache Kafka's jars: %w", err)
	}
	// Into a directory of our own, and then in one step to its name: a download
	// that was cut off is never taken for a whole one, and two processes may do
	// it at once.
	fresh, err := os.MkdirTemp(cache, "kafka-"+kafkaVersion+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := os.WriteFile(filepath.Join(fresh, "pom.xml"), []byte(pom), 0o644); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "dependency:copy-dependencies", "-DoutputDirectory="+fresh)
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetching Apache Kafka %s with Maven: %w\n%s", kafkaVersion, err, out)
	}
	if err := os.Rename(fresh, jars); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("keeping Apache Kafka's jars: %w", err)
	}
	return jars, nil
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// findJava is the java of JAVA_HOME or of the PATH, when it is new enough.
func findJava() (string, error) {
	java := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java = filepath.Join(home, "bin", "java")
	}
	path, err := exec.LookPath(java)
	if err != nil {
		return "", fmt.Errorf("the command %s is missing; %s", java, howToGet)
	}
	out, err := exec.Command(path, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w\n%s", path, err, out)
	}
	if err := newEnough(out); err != nil {
		return "", fmt.Errorf("%s: %w; %s", path, err, howToGet)
	}
	return path, nil
}

// newEnough reads what java -version prints.
func newEnough(out []byte) error {
	m := javaVersion.FindSubmatch(out)
	if m == nil {
		return errors.New("its -version names no version")
	}
	if major, _ := strconv.Atoi(string(m[1])); major < 17 {
		return fmt.Errorf("it is Java %d", major)
	}
	return nil
}
