package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPortsAreBelowThoseOfOutgoingConnections(t *testing.T) {
	for range 20 {
		port, err := freePort()
		if err != nil || port >= 32768 {
			t.Errorf("got %d, %v", port, err)
		}
	}
}

func TestAUsedPortIsRefusedAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	c := cluster{port: port}
	if err := c.choosePorts(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is in use", port)) {
		t.Errorf("got: %v", err)
	}
	listener.Close()
	if err := c.choosePorts(); err != nil || c.ports[apiServer] != port {
		t.Errorf("got %d, %v", c.ports[apiServer], err)
	}
}

func TestCertificatesAreGoodForLoopbackAndNothingElse(t *testing.T) {
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := ca.issue("server", "kubernetes.default.svc")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc"} {
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: "192.0.2.1"}); err == nil {
		t.Error("valid for a foreign address")
	}
	other, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(other.certificate)
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("valid under the authority of another control plane")
	}
}

func TestCommandsAreAVerbAndAComponent(t *testing.T) {
	got, err := parseCommand("  restart   kube-apiserver ")
	if err != nil || got != (command{"restart", apiServer}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, line := range []string{"restart", "restart kubelet", "drop etcd", "stop etcd now"} {
		if _, err := parseCommand(line); err == nil || !strings.Contains(err.Error(), "restart") {
			t.Errorf("%q: want an error that says what to write, got: %v", line, err)
		}
	}
}

func TestTheEndOfInputEndsTheContext(t *testing.T) {
	ctx, lines := readCommands(context.Background(), strings.NewReader("one\ntwo\n"))
	got := []string{<-lines, <-lines}
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("not ended")
	}
	if !slices.Equal(got, []string{"one", "two"}) || !errors.Is(context.Cause(ctx), errInputClosed) {
		t.Errorf("got %v, %v", got, context.Cause(ctx))
	}
}
