//! A pin to splits: manifests read and folded, files pruned, sections cut.
