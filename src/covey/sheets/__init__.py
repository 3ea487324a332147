"""Sheets: tables of results to be told, and tables to be filled in."""
