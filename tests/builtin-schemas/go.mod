module network-operator.samplecrd.k8s.io/tests/builtin-schemas

go 1.24
