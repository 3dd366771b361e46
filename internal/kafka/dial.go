package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// dialTimeout covers connecting and the TLS handshake. Two lost SYNs fit in (sent again after 1 and 3 s), and two dials of a dead broker in a session timeout.
const dialTimeout = 5 * time.Second

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

func (c Config) dialer() (dialFunc, error) {
	dial := dialFunc(c.Dial)
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	if c.TLS.Enabled {
		conf, err := c.TLS.load()
		if err != nil {
			return nil, fmt.Errorf("preparing kafka.tls: %w", err)
		}
		dial = overTLS(dial, conf)
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		return dial(ctx, network, addr)
	}, nil
}

func overTLS(dial dialFunc, conf *tls.Config) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		named := conf.Clone()
		named.ServerName = host
		conn := tls.Client(raw, named)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, err
		}
		return conn, nil
	}
}

func (c TLSConfig) load() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading ca_file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool() // left nil, the system's
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading ca_file %s: %w", c.CAFile, errors.New("no certificate in PEM form in it"))
		}
	}
	if c.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading cert_file and key_file: %w", err)
		}
		conf.Certificates = []tls.Certificate{cert}
	}
	return conf, nil
}
