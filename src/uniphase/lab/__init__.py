"""The reproduction of the paper: `engine` computes runs and `store` keeps their records; `report` makes the report from
them, with the tables of `tables` and the figures of `plots`. `experiments/` has one file per table or figure.
"""
