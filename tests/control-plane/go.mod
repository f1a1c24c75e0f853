module control-plane

go 1.26
