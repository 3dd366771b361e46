package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// selfSigned is a certificate for 127.0.0.1 that is its own authority, and the files that a configuration names.
func selfSigned(t *testing.T) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if cert, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return cert, write(t, "cert.pem", string(certPEM)), write(t, "key.pem", string(keyPEM))
}

func TestTLS(t *testing.T) {
	broker, brokerFile, _ := selfSigned(t)
	client, certFile, keyFile := selfSigned(t)
	trusted := x509.NewCertPool()
	trusted.AddCert(client.Leaf)
	cluster := startCluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{broker}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert}))

	for name, test := range map[string]struct {
		tls  TLSConfig
		want string // "" for a connection
	}{
		"authority and client certificate": {TLSConfig{Enabled: true, CAFile: brokerFile, CertFile: certFile, KeyFile: keyFile}, ""},
		"system's authorities":             {TLSConfig{Enabled: true, CertFile: certFile, KeyFile: keyFile}, "certificate signed by unknown authority"},
		"no client certificate":            {TLSConfig{Enabled: true, CAFile: brokerFile}, "certificate required"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ping(t, Config{Brokers: cluster.ListenAddrs(), InstanceID: "a", TLS: test.tls})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
}
