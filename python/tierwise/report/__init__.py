"""Results to HTML, pictures and tables; knows no engine."""
