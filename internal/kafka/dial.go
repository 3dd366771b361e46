package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
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
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, absence(err)
		}
		return conn, nil
	}, nil
}

// absence makes the dial of a broker that is down look like one that timed out, which kgo tries again, where a refused one it may not:
//
//  1. A broker dies. For 9 s (broker.session.timeout.ms) the others still name it as a coordinator.
//  2. A heartbeat finds it gone; kgo asks who the coordinator is.
//  3. It asks the dead broker, one of three. FindCoordinator is not repeated, and a refused dial is no reason to repeat the heartbeat, but to ask
//     the next broker: when that question goes to the dead one too (one in nine, at each of 20 tries), the heartbeat has failed.
//  4. A failed heartbeat ends the membership in the group, and with it all numbers: the loss of a broker would cost each dispatcher its own.
func absence(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "dial" || op.Timeout() || !downFor(op.Err) {
		return err
	}
	late := *op
	late.Err = absent{op.Err}
	return &late
}

// downFor: what a broker answers that is about to come back, or its machine.
func downFor(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

type absent struct{ error }

func (absent) Timeout() bool   { return true }
func (absent) Temporary() bool { return true }
func (a absent) Unwrap() error { return a.error }

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
