package delivery

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/reenvio/reenvio/internal/record"
)

// tlsID is the hash of TLS settings: webhooks with the same ones share their
// connections.
type tlsID [sha256.Size]byte

// ownTLS is what a webhook sets for TLS: an authority to trust instead of the
// system's, and a certificate to show.
type ownTLS struct {
	id     tlsID
	config *tls.Config
}

func newOwnTLS(t *record.TLS) (*ownTLS, error) {
	if t == nil || t.CA == "" && t.Cert == "" && t.Key == "" {
		return nil, nil
	}
	config := &tls.Config{}
	if t.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, errors.New("ca: want one or more certificates in PEM")
		}
	}
	switch {
	case t.Cert != "" && t.Key != "":
		pair, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
		if err != nil {
			return nil, fmt.Errorf("cert and key: want a certificate and its private key in PEM: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	case t.Cert != "" || t.Key != "":
		return nil, errors.New("cert and key: want both or none")
	}
	hash := sha256.New()
	for _, field := range []string{t.CA, t.Cert, t.Key} {
		// The length keeps ("ab", "c") and ("a", "bc") apart.
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		hash.Write([]byte(field))
	}
	own := &ownTLS{config: config}
	hash.Sum(own.id[:0])
	return own, nil
}
