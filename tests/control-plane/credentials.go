package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// credentials let the components, this program and its callers talk to each other.
type credentials struct {
	ca           *authority
	token        string // of an administrator
	userToken    string // of a user without any rights
	managerToken string // of the controller manager
	client       *http.Client
}

// newCredentials creates keys, certificates and tokens, and writes those that the components read into the folder.
func newCredentials(folder *runFolder) (credentials, error) {
	ca, err := newAuthority()
	if err != nil {
		return credentials{}, err
	}
	c := credentials{ca: ca, token: newToken(), userToken: newToken(), managerToken: newToken()}
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	c.client = &http.Client{
		Timeout: 5 * time.Second,
		// A connection per request: the question is whether a component answers now, not whether it did before.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
	}
	return c, c.write(folder)
}

func (c *credentials) write(folder *runFolder) error {
	signingKey, err := newSigningKey()
	if err != nil {
		return err
	}
	files := map[string][]byte{"ca.crt": c.ca.pem, "service-account.key": signingKey, "tokens.csv": []byte(c.tokens())}
	for _, component := range []component{apiServer, controllerManager} {
		name := string(component)
		if files[name+".crt"], files[name+".key"], err = c.ca.issue(name, "kubernetes.default.svc"); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := folder.write(name, content); err != nil {
			return err
		}
	}
	return nil
}

// tokens is the API server's static token file: token, user, UID, groups. The controller manager is a user of its own, as
// in a real cluster: with an administrator's rights it could do what RBAC would stop it from doing there.
func (c *credentials) tokens() string {
	return fmt.Sprintf("%s,admin,admin,system:masters\n%s,user,user,\n%s,system:kube-controller-manager,system:kube-controller-manager,\n",
		c.token, c.userToken, c.managerToken)
}

// A user of the API server, by name and token.
type user struct{ name, token string }

// kubeconfig lets a client reach the server as each of the users; the first is the default. The certificate is inside, so
// that the file still works when it is copied elsewhere.
func (c *credentials) kubeconfig(server string, users ...user) []byte {
	var contexts, tokens strings.Builder
	for _, user := range users {
		fmt.Fprintf(&contexts, "- name: %[1]s\n  context: {cluster: control-plane, user: %[1]s}\n", user.name)
		fmt.Fprintf(&tokens, "- name: %s\n  user: {token: %q}\n", user.name, user.token)
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: control-plane
  cluster:
    server: %s
    certificate-authority-data: %s
contexts:
%susers:
%scurrent-context: %s
`, server, base64.StdEncoding.EncodeToString(c.ca.pem), contexts.String(), tokens.String(), users[0].name)
}
