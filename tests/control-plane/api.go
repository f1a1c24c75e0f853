package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// readiness returns the check that fails for as long as a component cannot be used. «Healthy» is not enough: the health
// endpoint of a controller manager answers before any of its controllers runs.
func (c *cluster) readiness(component component) func(context.Context) error {
	switch component {
	case etcd:
		return func(ctx context.Context) error {
			if err := c.isOurEtcd(ctx); err != nil {
				return err
			}
			if !c.isRunning(apiServer) {
				return nil
			}
			return c.get(ctx, c.server()+"/readyz", nil) // after a restart of etcd: that is what clients see of it
		}
	case apiServer:
		return func(ctx context.Context) error { return c.get(ctx, c.server()+"/readyz", nil) }
	default:
		collectsGarbage := c.garbageProbe()
		return func(ctx context.Context) error {
			if err := c.get(ctx, fmt.Sprintf("https://127.0.0.1:%d/healthz", c.ports[controllerManager]), nil); err != nil {
				return err
			}
			// Every namespace gets this ServiceAccount, and nothing can run or ask for a token before it has.
			if err := c.get(ctx, c.server()+"/api/v1/namespaces/default/serviceaccounts/default", nil); err != nil {
				return err
			}
			return collectsGarbage(ctx)
		}
	}
}

// isOurEtcd asks etcd for the name of its member. etcd alone has no certificate by which another control plane's, on a
// port that both chose at the same moment, would be recognised.
func (c *cluster) isOurEtcd(ctx context.Context) error {
	var list struct{ Members []struct{ Name string } }
	if err := c.post(ctx, c.etcd()+"/v3/cluster/member/list", "application/json", []byte("{}"), &list); err != nil {
		return err
	}
	if len(list.Members) != 1 || list.Members[0].Name != c.member {
		return errors.New("another etcd answers on this port")
	}
	return nil
}

// garbageProbe returns a check that fails until the garbage collector works: it creates an object whose owner does not
// exist and waits for it to be deleted. A restarted controller manager leaves no other sign.
func (c *cluster) garbageProbe() func(context.Context) error {
	const orphan = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
		"generateName": "control-plane-probe-",
		"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "nothing", "uid": "00000000-0000-0000-0000-000000000000"}]}}`
	url := c.server() + "/api/v1/namespaces/kube-system/configmaps"
	created := ""
	return func(ctx context.Context) error {
		if created == "" {
			var object struct{ Metadata struct{ Name string } }
			if err := c.post(ctx, url, "application/json", []byte(orphan), &object); err != nil {
				return err
			}
			created = object.Metadata.Name
		}
		err := c.get(ctx, url+"/"+created, nil)
		if status := (statusError{}); errors.As(err, &status) && status.code == http.StatusNotFound {
			return nil
		}
		return errors.Join(err, errors.New("the garbage collector does not work yet"))
	}
}

// A crdFile holds a CustomResourceDefinition, as YAML or JSON: the API server reads both.
type crdFile struct {
	path    string
	content []byte
}

// installCRDs creates the CustomResourceDefinitions that were asked for, before the controller manager starts. Its garbage
// collector looks for new kinds only when it starts and every 30 seconds, and children of an object whose kind it does not
// know yet stay for as long after the object is deleted: half a minute in each test.
func (c *cluster) installCRDs(ctx context.Context) error {
	collection := c.server() + "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for _, crd := range c.crds {
		var created struct{ Metadata struct{ Name string } }
		if err := c.post(ctx, collection, "application/yaml", crd.content, &created); err != nil {
			return fmt.Errorf("install %s: %w", crd.path, err)
		}
		err := c.waitFor(ctx, c.processes[apiServer], crd.path, func(ctx context.Context) error {
			return c.isEstablished(ctx, collection+"/"+created.Metadata.Name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) isEstablished(ctx context.Context, url string) error {
	var crd struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := c.get(ctx, url, &crd); err != nil {
		return err
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Type == "Established" && condition.Status == "True" {
			return nil
		}
	}
	return fmt.Errorf("not established: %v", crd.Status.Conditions)
}

// serverVersion is the version that the API server says it has.
func (c *cluster) serverVersion(ctx context.Context) (string, error) {
	var version struct{ GitVersion string }
	err := c.get(ctx, c.server()+"/version", &version)
	return version.GitVersion, err
}

// learnVersion keeps which Kubernetes this is: the binaries of KUBEBUILDER_ASSETS can be any.
func (c *cluster) learnVersion(ctx context.Context) error {
	text, err := c.serverVersion(ctx)
	if err != nil {
		return err
	}
	text, _, _ = strings.Cut(text, "+") // a distribution's addition
	if c.version, err = parseKubeVersion(text); err != nil {
		// Whoever names versions in a way of his own is not old.
		c.version, err = parseKubeVersion(defaultKubeVersion)
	}
	return err
}

// statusError is an answer that is not a success.
type statusError struct {
	url  string
	code int
	body string
}

func (e statusError) Error() string {
	text := strings.TrimSpace(e.body)
	var status struct{ Message string } // what Kubernetes answers with
	if json.Unmarshal([]byte(e.body), &status) == nil && status.Message != "" {
		text = status.Message
	}
	return fmt.Sprintf("%s answered %d: %.1000s", e.url, e.code, text)
}

// get fetches a URL as the administrator, and decodes the JSON answer unless into is nil.
func (c *credentials) get(ctx context.Context, url string, into any) error {
	return c.do(ctx, http.MethodGet, url, "", nil, into)
}

func (c *credentials) post(ctx context.Context, url, contentType string, body []byte, into any) error {
	return c.do(ctx, http.MethodPost, url, contentType, body, into)
}

func (c *credentials) do(ctx context.Context, method, url, contentType string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Accept", "application/json, */*")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return statusError{url, response.StatusCode, string(answer)}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}
