//! Where our answers are known to differ from those of a Kubernetes 1.36 API server, and why. A test asks a server about
//! every example here and fails when the table is wrong either way; the language reference prints it, and `check` warns.

/// A difference that is known and stays.
#[derive(Debug, Clone, Copy)]
pub struct Difference {
    /// The function, macro or operator that answers differently; empty when it is the language itself.
    pub function: &'static str,
    /// What differs, in a sentence.
    pub what: &'static str,
    /// Why it is not the same here.
    pub reason: &'static str,
    /// Expressions that show it.
    pub examples: &'static [&'static str],
}

/// All known differences. What is ours alone is not among them: see [`FunctionDoc::kubernetes`](super::FunctionDoc).
pub fn known_differences() -> &'static [Difference] {
    DIFFERENCES
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        function: "",
        what: "Loops over a map go through its keys in sorted order; in Kubernetes the order changes from run to run",
        reason: "the same rule and object must give the same children, byte for byte",
        examples: &[],
    },
    Difference {
        function: "",
        what: "Mixing types that Kubernetes' type checker refuses (`1 == 1.0`, `[1, 'a']`) is an error of the check here, not of the evaluation, which compares numbers by value",
        reason: "values of a Network have no static type at run time",
        examples: &["1 == 1.0", "[1, 'a'].size()", "ip('10.0.0.1') == '10.0.0.1'", "quantity('1') == 1"],
    },
    Difference {
        function: "",
        what: "A map literal cannot have a double as a key",
        reason: "no object can have one, and equal doubles need not be equal texts",
        examples: &["{1.5: 2}"],
    },
    Difference {
        function: "double",
        what: "Hexadecimal numbers with an exponent, `double('0x10p0')`, are not understood",
        reason: "no one writes them in an object, and a decimal says the same",
        examples: &["double('0x10p0')"],
    },
    Difference {
        function: "validate",
        what: "The messages of named formats are worded differently; there are as many of them, for the same texts",
        reason: "they are written for the people who read rule files",
        examples: &["format.dns1123Label().validate('A').value()"],
    },
    Difference {
        function: "sortBy",
        what: "Elements with equal keys keep their order; in Kubernetes they may change places",
        reason: "the same rule and object must give the same children, byte for byte",
        examples: &[],
    },
];
