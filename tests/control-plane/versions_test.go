package main

import (
	"slices"
	"strings"
	"testing"
)

func TestVersionsAreReadAsReleasesAreNamed(t *testing.T) {
	for text, libraries := range map[string]string{"v1.36.3": "v0.36.3", "v1.21.6": "v0.21.6", "v1.38.0-rc.1": "v0.38.0-rc.1"} {
		version, err := parseKubeVersion(text)
		if err != nil || version.String() != text || version.libraries() != libraries {
			t.Errorf("%s: got %v with libraries %s, %v", text, version, version.libraries(), err)
		}
	}
	for _, text := range []string{"", "1.36.3", "v1.36", "v2.0.0", "latest", "v1.36.3+build", "v1.36.3-foo"} {
		if _, err := parseKubeVersion(text); err == nil || !strings.Contains(err.Error(), defaultKubeVersion) {
			t.Errorf("%q: want an error with an example, got: %v", text, err)
		}
	}
}

func TestQuirksOfOldAndNewVersions(t *testing.T) {
	quirks := func(text string) quirks {
		version, err := parseKubeVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		return quirksOf(version)
	}
	if !quirks("v1.23.17").generateOpenAPI || quirks("v1.24.0").generateOpenAPI {
		t.Error("OpenAPI definitions are part of the module since v1.24")
	}
	if len(quirks("v1.36.3").newerDependencies) > 0 {
		t.Error("a current version is built from exactly what it was released with")
	}
}

func TestBinariesKnowTheirVersion(t *testing.T) {
	version, err := parseKubeVersion("v1.21.6")
	if err != nil {
		t.Fatal(err)
	}
	flags := strings.Fields(version.linkerFlags())
	for _, want := range []string{
		"k8s.io/component-base/version.gitVersion=v1.21.6",
		"k8s.io/component-base/version.gitMajor=1",
		"k8s.io/component-base/version.gitMinor=21",
		"k8s.io/client-go/pkg/version.gitVersion=v1.21.6",
	} {
		if !slices.Contains(flags, want) {
			t.Errorf("missing: %s in: %s", want, flags)
		}
	}
}

func TestTheEnvironmentChoosesTheDefaultVersion(t *testing.T) {
	t.Setenv("KUBE_VERSION", "")
	if got := versionFlagDefault(); got != defaultKubeVersion {
		t.Errorf("unset: %s", got)
	}
	t.Setenv("KUBE_VERSION", "v1.30.0")
	if got := versionFlagDefault(); got != "v1.30.0" {
		t.Errorf("set: %s", got)
	}
}
