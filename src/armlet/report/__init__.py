"""What every HTML page is made of: document, tables, pictures, plots."""
