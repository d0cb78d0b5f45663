//! Values as text: casts to STRING, as Java writes them.
