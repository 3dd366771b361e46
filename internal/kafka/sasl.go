package kafka

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// mechanism reads the password file now, to tell early of a bad one, and then for every session: a token ends, a password is changed.
func (c SASLConfig) mechanism() (sasl.Mechanism, error) {
	if _, err := c.password(); err != nil {
		return nil, err
	}
	scramAuth := func(context.Context) (scram.Auth, error) {
		pass, err := c.password()
		return scram.Auth{User: c.Username, Pass: pass}, err
	}
	switch c.Mechanism {
	case mechPlain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			pass, err := c.password()
			return plain.Auth{User: c.Username, Pass: pass}, err
		}), nil
	case mechSHA256:
		return scram.Sha256(scramAuth), nil
	case mechSHA512:
		return scram.Sha512(scramAuth), nil
	case mechOAuth:
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := c.password()
			return oauth.Auth{Token: token}, err
		}), nil
	}
	return nil, c.validate()
}

// password is the file's content without the newline that editors leave at its end.
func (c SASLConfig) password() (string, error) {
	content, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("reading password_file: %w", err)
	}
	pass := strings.TrimRight(string(content), "\r\n")
	if pass == "" {
		return "", fmt.Errorf("reading password_file: %s is empty", c.PasswordFile)
	}
	return pass, nil
}
